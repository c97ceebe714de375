//! A certificate authority made on the spot: a root that clients are told to believe, and an intermediate that signs for servers.

use std::fmt;

use boring::asn1::{Asn1Integer, Asn1Time};
use boring::bn::{BigNum, MsbOption};
use boring::ec::{EcGroup, EcKey};
use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::{PKey, Private};
use boring::rsa::Rsa;
use boring::x509::extension::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName};
use boring::x509::{X509, X509Builder, X509Extension, X509Name, X509NameBuilder};

use super::{Identity, reason};
use crate::tls::Error;

/// Days that its certificates are valid: longer than any load.
const DAYS_VALID: u32 = 7;

/// A certificate authority for one run, with a key for servers. What it signs is of one kind.
pub struct Authority {
    root: X509,
    intermediate: X509,
    key: PKey<Private>,
    server_key: PKey<Private>,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes keys of the kind that signs so, a root and an intermediate.
    pub fn new(signature: tls::Signature) -> Result<Self, Error> {
        let make = || {
            let (root_key, key) = (new_key(signature)?, new_key(signature)?);
            let (root_name, name) = (named("velodrome root")?, named("velodrome")?);
            let root = authority(&root_name, &root_key, &root_name, &root_key)?;
            let intermediate = authority(&name, &key, &root_name, &root_key)?;
            Ok(Self { root, intermediate, key, server_key: new_key(signature)? })
        };
        make().map_err(about)
    }

    /// The root in PEM, for whoever is to believe it.
    pub fn root_pem(&self) -> Result<Vec<u8>, Error> {
        self.root.to_pem().map_err(about)
    }

    /// The intermediate in PEM, for whoever is to believe servers that leave it out.
    pub fn intermediate_pem(&self) -> Result<Vec<u8>, Error> {
        self.intermediate.to_pem().map_err(about)
    }

    /// A chain for servers of these names and addresses: their certificate and, unless it is to be `alone`, the intermediate's. A comment
    /// in the first makes the chain `chain_len` bytes long (DER) if it would be shorter. Gives the length that it has.
    pub fn issue(&self, names: &[String], chain_len: u32, alone: bool) -> Result<(Identity, u32), Error> {
        let issuer = Some(&self.intermediate).filter(|_| !alone);
        let make = || {
            let mut padding = 0;
            // Padding has lengths of its own, which depend on it: twice finds them.
            for _ in 0..4 {
                let (chain, len) = measured(self.server(names, padding)?, issuer)?;
                let wanted = padding as i64 + i64::from(chain_len) - len as i64;
                if wanted == padding as i64 || wanted <= 0 {
                    return Ok((Identity::of(chain, self.server_key.clone()), len as u32));
                }
                padding = wanted as usize;
            }
            let (chain, len) = measured(self.server(names, padding)?, issuer)?;
            Ok((Identity::of(chain, self.server_key.clone()), len as u32))
        };
        make().map_err(about)
    }

    fn server(&self, names: &[String], padding: usize) -> Result<X509, ErrorStack> {
        let mut builder =
            begin(&named("velodrome server")?, &self.server_key, self.intermediate.subject_name())?;
        let mut alternatives = SubjectAlternativeName::new();
        for name in names {
            match name.trim_matches(['[', ']']).parse::<std::net::IpAddr>() {
                Ok(address) => alternatives.ip(&address.to_string()),
                Err(_) => alternatives.dns(name),
            };
        }
        let usage = KeyUsage::new().critical().digital_signature().key_encipherment().build()?;
        let purpose = ExtendedKeyUsage::new().server_auth().build()?;
        builder.append_extension(&usage)?;
        builder.append_extension(&purpose)?;
        let alternatives = alternatives.build(&builder.x509v3_context(None, None))?;
        builder.append_extension(&alternatives)?;
        if padding > 0 {
            let text = "-".repeat(padding);
            let comment = X509Extension::new_nid(None, None, Nid::NETSCAPE_COMMENT, &text)?;
            builder.append_extension(&comment)?;
        }
        builder.sign(&self.key, MessageDigest::sha256())?;
        Ok(builder.build())
    }
}

/// A chain, and its bytes of DER.
fn measured(server: X509, issuer: Option<&X509>) -> Result<(Vec<X509>, usize), ErrorStack> {
    let chain: Vec<X509> = std::iter::once(server).chain(issuer.cloned()).collect();
    let len = chain.iter().map(|c| c.to_der().map(|der| der.len())).sum::<Result<usize, _>>()?;
    Ok((chain, len))
}

fn about(errors: ErrorStack) -> Error {
    Error::new("certificate authority", reason(&errors))
}

fn new_key(signature: tls::Signature) -> Result<PKey<Private>, ErrorStack> {
    match signature {
        tls::Signature::Rsa2048 => PKey::from_rsa(Rsa::generate(2_048)?),
        tls::Signature::EcdsaP256 => {
            PKey::from_ec_key(EcKey::generate(EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?.as_ref())?)
        }
    }
}

fn named(common_name: &str) -> Result<X509Name, ErrorStack> {
    let mut name = X509NameBuilder::new()?;
    name.append_entry_by_nid(Nid::COMMONNAME, common_name)?;
    Ok(name.build())
}

fn authority(
    name: &X509Name,
    key: &PKey<Private>,
    issuer: &X509Name,
    issuer_key: &PKey<Private>,
) -> Result<X509, ErrorStack> {
    let mut builder = begin(name, key, issuer)?;
    let constraints = BasicConstraints::new().critical().ca().build()?;
    let usage = KeyUsage::new().critical().key_cert_sign().crl_sign().build()?;
    builder.append_extension(&constraints)?;
    builder.append_extension(&usage)?;
    builder.sign(issuer_key, MessageDigest::sha256())?;
    Ok(builder.build())
}

fn begin(
    name: &X509Name,
    key: &PKey<Private>,
    issuer: &boring::x509::X509NameRef,
) -> Result<X509Builder, ErrorStack> {
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    let serial = serial()?;
    builder.set_serial_number(&serial)?;
    builder.set_subject_name(name)?;
    builder.set_issuer_name(issuer)?;
    builder.set_pubkey(key)?;
    let (from, to) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(DAYS_VALID)?);
    builder.set_not_before(&from)?;
    builder.set_not_after(&to)?;
    Ok(builder)
}

/// Always as long on the wire: its first byte is not zero.
fn serial() -> Result<Asn1Integer, ErrorStack> {
    let mut serial = BigNum::new()?;
    serial.rand(158, MsbOption::ONE, false)?;
    serial.to_asn1_integer()
}
