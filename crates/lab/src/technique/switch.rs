//! The switches: how each is written, and what it does in a few words.

/// A switch: its name, the values it takes, and what it does. Help, errors and parser are made from this table.
pub(super) struct Switch {
    pub(super) name: &'static str,
    pub(super) values: &'static str,
    pub(super) about: &'static str,
}

/// Every switch.
pub(super) const SWITCHES: [Switch; 35] = [
    Switch {
        name: "false-start",
        values: "",
        about: "TLS 1.2 requests leave with the client's Finished, a round trip early",
    },
    Switch {
        name: "preconnect",
        values: "=learned|successor|blind-two",
        about: "connections before they are asked for: as Chrome learned them in 2010, as it does since, or two to every host",
    },
    Switch {
        name: "visits",
        values: "=N",
        about: "visits before the measured one, from which preconnect, prefetch, kept-cwnd or pipelining has learned, or at which certificates were asked about (10 for preconnect, 1 for prefetch and kept-cwnd, else 0, unless set)",
    },
    Switch {
        name: "racing",
        values: "[=MS]",
        about: "a second connection beside one that takes so long (250 unless set)",
    },
    Switch {
        name: "tls-wait",
        values: "",
        about: "handshakes with one host wait for the first, and resume its session",
    },
    Switch {
        name: "pipelining",
        values: "[=DEPTH]",
        about: "HTTP/1.1 requests follow each other, by Firefox's rules, so many at most (32 unless set)",
    },
    Switch {
        name: "pipelining-xhr",
        values: "",
        about: "XHR may be pipelined too, which Firefox did not do",
    },
    Switch {
        name: "green-hosts",
        values: "",
        about: "every host has passed its trial of pipelining before the load",
    },
    Switch {
        name: "bad-pipeliners",
        values: "=stall|reorder|close|corrupt|ignore:SHARE|HOST,HOST…[+…]",
        about: "servers that are no good at pipelines: a share of all, from 0 to 1, or those named",
    },
    Switch {
        name: "server-idle",
        values: "=close|408:SECONDS",
        about: "servers end HTTP/1.1 connections on which nothing has happened for so long, without a word or with a 408",
    },
    Switch {
        name: "happy-eyeballs",
        values: "[=rfc8305|chrome]",
        about: "addresses of IPv6 and IPv4 race: as RFC 8305 has it (unless set), or as Chrome did",
    },
    Switch {
        name: "ipv6",
        values: "=same|lost|refused|MS[:SHARE|HOST,HOST…]",
        about: "servers (all unless set) have an address of IPv6, tried first: as near, never answering, refusing, or so much farther",
    },
    Switch {
        name: "retry",
        values: "=firefox|reloading",
        about: "requests that failed are sent again: by Firefox's rules, or three times each, silence being a failure too",
    },
    Switch {
        name: "timeouts",
        values: "",
        about: "connections are given up and idle ones closed as in Chrome",
    },
    Switch {
        name: "spdy-hosts",
        values: "=page|first-party|HOST,HOST…",
        about: "only these hosts speak SPDY, the others HTTP/1.1",
    },
    Switch {
        name: "cert-checks",
        values: "=ocsp|chain|ocsp+chain",
        about: "a handshake waits while the authority is asked: whether the certificate is good, for its issuer's, or both",
    },
    Switch {
        name: "cert-timeout",
        values: "=MS",
        about: "how long an authority may take, then certificates are taken as good (15000, Chrome's, unless set; Firefox: 2000)",
    },
    Switch {
        name: "stapling",
        values: "",
        about: "servers send the authority's answer with the certificate, so that it is not asked",
    },
    Switch {
        name: "pinned",
        values: "",
        about: "the client carries the certificate of the page's host, and asks nothing about it",
    },
    Switch {
        name: "fault",
        values: "=refuse|hang|reset|vanish[:HOST|:HOST/PATH|:/PATH][:once|:SHARE][@N]",
        about: "connections refused, requests never answered, answers cut off (after N bytes), hosts gone (after N ms); may be repeated",
    },
    Switch {
        name: "blackhole",
        values: "=FROM+FOR",
        about: "every packet is lost from so many ms on, for so many; may be repeated",
    },
    Switch {
        name: "network-change",
        values: "=AT:NETWORK",
        about: "after so many ms the client is on another network, with another address",
    },
    Switch {
        name: "restart",
        values: "=AT",
        about: "after so many ms the browser ends and is started again; with retry=reloading it goes on where it was",
    },
    Switch {
        name: "revisit",
        values: "[=HOURS]",
        about: "a second visit, so many hours later (0 unless set): what the page's responses allow is in the cache",
    },
    Switch {
        name: "spdy-without",
        values: "=FEATURE,FEATURE…",
        about: "SPDY lacks multiplexing, priorities, compression, flow-control or settings",
    },
    Switch {
        name: "push",
        values: "",
        about: "SPDY servers push with a document what it is sure to need of its host",
    },
    Switch {
        name: "hints",
        values: "[=subresources|preload]",
        about: "documents' heads name what they will need, as X-Subresources (unless set) or Link: rel=preload, and it is asked for at once",
    },
    Switch {
        name: "prefetch",
        values: "",
        about: "what the page needed when it was last visited is asked for with its document",
    },
    Switch {
        name: "kept-cwnd",
        values: "[=SEGMENTS]",
        about: "SPDY clients keep servers' congestion windows in SETTINGS: the next session begins with so many segments of it at most (128 unless set)",
    },
    Switch {
        name: "pooling",
        values: "",
        about: "a party's secured hosts share an address, a certificate and SPDY sessions",
    },
    Switch {
        name: "owners",
        values: "=DOMAIN+DOMAIN…,DOMAIN+…",
        about: "domains that are one party's, for pooling and spdy-hosts=first-party",
    },
    Switch {
        name: "paused-media",
        values: "=SECONDS",
        about: "nobody reads on, for so long, what is played, once 64 kB of it were read",
    },
    Switch {
        name: "stalled",
        values: "=buffer|kill|block",
        about: "a stream that nobody reads and no window holds back: kept whole, ended, or all others wait with it",
    },
    Switch {
        name: "cross-traffic",
        values: "=bulk|video",
        about: "the access link is shared with a transfer without end, or with a video in blocks of 64 KB, 1.25 Mbit/s in all",
    },
    Switch {
        name: "tabs",
        values: "=N:at-once|classes|foreground-first|one-by-one",
        about: "the plan's next N pages behind each, as tabs: all alike, of lower priority, after the one in front, or each after the one before",
    },
];
