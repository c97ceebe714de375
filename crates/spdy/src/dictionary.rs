//! The preset dictionaries that header compression starts from. They are part of the specifications.

/// Bytes that both ends know before the first header block.
pub struct Dictionary {
    /// The checksum by which a zlib stream names it (RFC 1950 §2.2, DICTID).
    pub adler32: u32,
    /// The bytes.
    pub bytes: &'static [u8],
}

/// SPDY/2, "Name/Value header block format". The text says that it is NUL-terminated, and the NUL is part of it.
pub static V2: Dictionary = Dictionary {
    adler32: 0xdfa2_51b2,
    bytes: b"\
    optionsgetheadpostputdeletetraceacceptaccept-charsetaccept-encodingaccept-languageauthorizationexpectfro\
    mhostif-modified-sinceif-matchif-none-matchif-rangeif-unmodifiedsincemax-forwardsproxy-authorizationrang\
    erefererteuser-agent100101200201202203204205206300301302303304305306307400401402403404405406407408409410\
    411412413414415416417500501502503504505accept-rangesageetaglocationproxy-authenticatepublicretry-afterse\
    rvervarywarningwww-authenticateallowcontent-basecontent-encodingcache-controlconnectiondatetrailertransf\
    er-encodingupgradeviawarningcontent-languagecontent-lengthcontent-locationcontent-md5content-rangeconten\
    t-typeetagexpireslast-modifiedset-cookieMondayTuesdayWednesdayThursdayFridaySaturdaySundayJanFebMarAprMa\
    yJunJulAugSepOctNovDecchunkedtext/htmlimage/pngimage/jpgimage/gifapplication/xmlapplication/xhtmltext/pl\
    ainpublicmax-agecharset=iso-8859-1utf-8gzipdeflateHTTP/1.1statusversionurl\0",
};

/// SPDY/3 and 3.1 §2.6.10.1.
pub static V3: Dictionary = Dictionary {
    adler32: 0xe3c6_a7c2,
    bytes: b"\
    \0\0\0\x07options\0\0\0\x04head\0\0\0\x04post\0\0\0\x03put\0\0\0\x06delete\0\0\0\x05trace\0\0\0\x06accep\
    t\0\0\0\x0eaccept-charset\0\0\0\x0faccept-encoding\0\0\0\x0faccept-language\0\0\0\x0daccept-ranges\0\0\0\
    \x03age\0\0\0\x05allow\0\0\0\x0dauthorization\0\0\0\x0dcache-control\0\0\0\x0aconnection\0\0\0\x0cconten\
    t-base\0\0\0\x10content-encoding\0\0\0\x10content-language\0\0\0\x0econtent-length\0\0\0\x10content-loca\
    tion\0\0\0\x0bcontent-md5\0\0\0\x0dcontent-range\0\0\0\x0ccontent-type\0\0\0\x04date\0\0\0\x04etag\0\0\0\
    \x06expect\0\0\0\x07expires\0\0\0\x04from\0\0\0\x04host\0\0\0\x08if-match\0\0\0\x11if-modified-since\0\0\
    \0\x0dif-none-match\0\0\0\x08if-range\0\0\0\x13if-unmodified-since\0\0\0\x0dlast-modified\0\0\0\x08locat\
    ion\0\0\0\x0cmax-forwards\0\0\0\x06pragma\0\0\0\x12proxy-authenticate\0\0\0\x13proxy-authorization\0\0\0\
    \x05range\0\0\0\x07referer\0\0\0\x0bretry-after\0\0\0\x06server\0\0\0\x02te\0\0\0\x07trailer\0\0\0\x11tr\
    ansfer-encoding\0\0\0\x07upgrade\0\0\0\x0auser-agent\0\0\0\x04vary\0\0\0\x03via\0\0\0\x07warning\0\0\0\
    \x10www-authenticate\0\0\0\x06method\0\0\0\x03get\0\0\0\x06status\0\0\0\x06200 OK\0\0\0\x07version\0\0\0\
    \x08HTTP/1.1\0\0\0\x03url\0\0\0\x06public\0\0\0\x0aset-cookie\0\0\0\x0akeep-alive\0\0\0\x06origin1001012\
    01202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative \
    Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found5\
    00 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept O\
    ct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gi\
    f,application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdc\
    hcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.",
};

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn both_dictionaries_are_the_published_ones_to_the_byte() {
        let published = [
            (&V2, 907, "0088d05d3b07b510aae796d67857c83308247ae79078d5743f412e483c23fbc6"),
            (&V3, 1423, "51d27341373f923f3cd88e1eb7162aeaa3723d7585ff2399201dc06498407f02"),
        ];
        for (dictionary, len, sha256) in published {
            assert_eq!(dictionary.bytes.len(), len);
            assert_eq!(adler32(dictionary.bytes), dictionary.adler32);
            let digest: String =
                Sha256::digest(dictionary.bytes).iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(digest, sha256);
        }
    }

    /// RFC 1950 §9.
    fn adler32(bytes: &[u8]) -> u32 {
        let (mut a, mut b) = (1_u32, 0_u32);
        for byte in bytes {
            a = (a + u32::from(*byte)) % 65_521;
            b = (b + a) % 65_521;
        }
        b << 16 | a
    }
}
