//! What a page is: resources, hosts, dependencies and computation; HAR in and out; generated corpora
