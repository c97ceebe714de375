//! Certificates and their keys: read from files, or made on the spot.

use std::net::IpAddr;
use std::path::Path;

use boring::asn1::Asn1Time;
use boring::bn::{BigNum, MsbOption};
use boring::ec::{EcGroup, EcKey};
use boring::error::ErrorStack;
use boring::hash::MessageDigest;
use boring::nid::Nid;
use boring::pkey::{PKey, Private};
use boring::ssl::SslContextBuilder;
use boring::x509::extension::{BasicConstraints, ExtendedKeyUsage, KeyUsage, SubjectAlternativeName};
use boring::x509::{X509, X509NameBuilder};

use super::reason;
use crate::tls::Error;

/// Days that a certificate made on the spot is valid: what browsers accept at most since 2020.
const DAYS_VALID: u32 = 397;

/// A certificate chain, the server's own first, and the key of that.
#[derive(Clone, Debug)]
pub struct Identity {
    chain: Vec<X509>,
    key: PKey<Private>,
}

impl Identity {
    /// Reads PEM files; they are checked to belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let open = |path: &Path| std::fs::read(path).map_err(|e| Error::new(path.display(), e));
        let chain = X509::stack_from_pem(&open(certificate)?)
            .map_err(|e| Error::new(certificate.display(), reason(&e)))?;
        let Some(own) = chain.first() else {
            return Err(Error::new(certificate.display(), "no certificate in it: give a PEM file"));
        };
        let pair = PKey::private_key_from_pem(&open(key)?).map_err(|e| {
            Error::new(key.display(), format!("no private key: {}; give a PEM file", reason(&e)))
        })?;
        let public = own.public_key().map_err(|e| Error::new(certificate.display(), reason(&e)))?;
        if !public.public_eq(&pair) {
            return Err(Error::new(key.display(), format!("is not the key of {}", certificate.display())));
        }
        Ok(Self { chain, key: pair })
    }

    /// Makes a key (P-256) and a certificate for these names and addresses, signed by itself.
    pub fn self_signed(names: &[String]) -> Result<Self, Error> {
        make(names).map_err(|e| Error::new("certificate", reason(&e)))
    }

    /// A chain and its key, which are known to belong together.
    pub(super) fn of(chain: Vec<X509>, key: PKey<Private>) -> Self {
        Self { chain, key }
    }

    /// The chain in PEM, for whoever is to trust it.
    pub fn certificate_pem(&self) -> Result<Vec<u8>, Error> {
        let mut pem = Vec::new();
        for certificate in &self.chain {
            pem.extend(certificate.to_pem().map_err(|e| Error::new("certificate", reason(&e)))?);
        }
        Ok(pem)
    }

    /// The key in PEM.
    pub fn key_pem(&self) -> Result<Vec<u8>, Error> {
        self.key.private_key_to_pem_pkcs8().map_err(|e| Error::new("key", reason(&e)))
    }

    pub(super) fn install(&self, context: &mut SslContextBuilder) -> Result<(), Error> {
        let put = |context: &mut SslContextBuilder| {
            context.set_certificate(&self.chain[0])?;
            for certificate in &self.chain[1..] {
                context.add_extra_chain_cert(certificate.clone())?;
            }
            context.set_private_key(&self.key)
        };
        put(context).map_err(|e| Error::new("certificate", reason(&e)))
    }
}

fn make(names: &[String]) -> Result<Identity, ErrorStack> {
    let key = PKey::from_ec_key(EcKey::generate(EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?.as_ref())?)?;
    let mut subject = X509NameBuilder::new()?;
    // The common name has 64 bytes at most (RFC 5280, upper bounds), and nobody reads it any more.
    subject.append_entry_by_nid(Nid::COMMONNAME, "velodrome")?;
    let subject = subject.build();
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    let mut serial = BigNum::new()?;
    serial.rand(159, MsbOption::MAYBE_ZERO, false)?;
    let serial = serial.to_asn1_integer()?;
    builder.set_serial_number(&serial)?;
    builder.set_subject_name(&subject)?;
    builder.set_issuer_name(&subject)?;
    builder.set_pubkey(&key)?;
    let (from, to) = (Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(DAYS_VALID)?);
    builder.set_not_before(&from)?;
    builder.set_not_after(&to)?;
    let mut alternatives = SubjectAlternativeName::new();
    for name in names {
        match name.parse::<IpAddr>() {
            Ok(address) => alternatives.ip(&address.to_string()),
            Err(_) => alternatives.dns(name),
        };
    }
    let constraints = BasicConstraints::new().critical().ca().build()?;
    let usage = KeyUsage::new().critical().digital_signature().key_cert_sign().build()?;
    let purpose = ExtendedKeyUsage::new().server_auth().build()?;
    builder.append_extension(&constraints)?;
    builder.append_extension(&usage)?;
    builder.append_extension(&purpose)?;
    let alternatives = alternatives.build(&builder.x509v3_context(None, None))?;
    builder.append_extension(&alternatives)?;
    builder.sign(&key, MessageDigest::sha256())?;
    Ok(Identity { chain: vec![builder.build()], key })
}
