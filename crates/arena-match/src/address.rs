//! The check that an IP address is public. A server that connects to private addresses for its users would
//! give them access to its network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns true if an address is on the public internet. Addresses of this machine and of private, local or
/// reserved ranges aren't public. Sources: the IANA special-purpose address registries for IPv4 and IPv6.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_loopback()
        || address.is_private()
        || address.is_link_local()
        || address.is_multicast()
        || address.is_documentation()
        || a == 0
        || a >= 240
        // Carrier-grade NAT.
        || (a == 100 && b & 0b1100_0000 == 64)
        // Protocol assignments, 6to4 relays and benchmarks.
        || (a, b, c) == (192, 0, 0)
        || (a, b, c) == (192, 88, 99)
        || (a == 198 && b & 0b1111_1110 == 18);
    !is_special
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    let parts = address.segments();
    // An address that embeds an IPv4 address is as public as that address.
    let v4 = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match parts {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => {
            is_public_v4(v4(high, low))
        }
        // Not public: Teredo, benchmarks and documentation.
        [0x2001, second, ..] => second >= 0x200 && second != 0xdb8,
        [0x3fff, second, ..] => second >= 0x1000,
        // The range of all unicast addresses assigned so far.
        [first, ..] => first & 0xe000 == 0x2000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_not_public() {
        let near = "0.0.0.0 0.1.2.3 10.0.0.1 100.64.0.1 100.127.255.255 127.0.0.1 127.9.9.9 169.254.169.254 172.16.0.1 \
            172.31.255.255 192.0.0.8 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255 198.51.100.7 \
            203.0.113.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.1.2.3 \
            64:ff9b::a00:1 64:ff9b:1::1 100::1 2001::1 2001:db8::1 2002:7f00:1:: 2002:a00:1:: 3fff:fff::1 \
            5f00::1 fc00::1 fd12::1 fe80::1 fec0::1 ff02::1";
        for text in near.split(' ') {
            assert!(!is_public(text.parse().unwrap()), "{text}");
        }
        let far = "1.1.1.1 9.9.9.9 100.63.0.1 100.128.0.1 172.15.0.1 172.32.0.1 192.0.1.1 198.20.0.1 223.255.255.254 \
            2606:4700::1111 2a00:1450::1 2001:4860::8888 2002:101:101:: ::ffff:1.1.1.1 64:ff9b::101:101";
        for text in far.split(' ') {
            assert!(is_public(text.parse().unwrap()), "{text}");
        }
    }
}
