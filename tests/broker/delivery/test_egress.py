"""Where deliveries may go: the policy for every kind of address, and its rules."""

import pytest

from ibrik_broker.delivery.egress import FORBIDDEN_PORTS, REASONS, Egress, egress_policy
from ibrik_broker.settings.egress import parse_rule
from ibrik_broker.settings.groups import EgressSettings

STRICT = Egress()
LAPTOP = Egress(allow_loopback=True, allow_private=True)
ALWAYS = [
    ("169.254.169.254", "metadata"),
    ("100.100.100.200", "metadata"),
    ("168.63.129.16", "metadata"),
    ("fd00:ec2::254", "metadata"),
    ("fd00:ec2:0::0:254", "metadata"),
    ("::ffff:169.254.169.254", "metadata"),
    ("::a9fe:a9fe", "metadata"),
    ("0.0.0.0", "unspecified"),
    ("0.1.2.3", "unspecified"),
    ("::", "unspecified"),
    ("::ffff:0.0.0.0", "unspecified"),
    ("169.254.1.1", "link-local"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("fec0::1", "link-local"),
    ("224.0.0.1", "multicast"),
    ("ff02::1", "multicast"),
    ("255.255.255.255", "broadcast"),
    ("240.0.0.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("192.0.0.8", "reserved"),
    ("2001::1", "reserved"),
    ("4000::1", "reserved"),
    ("100::1", "reserved"),
    ("::ffff:0:7f00:1", "reserved"),
    ("192.0.2.1", "documentation"),
    ("198.51.100.7", "documentation"),
    ("203.0.113.9", "documentation"),
    ("2001:db8::1", "documentation"),
    ("3fff::1", "documentation"),
    ("192.88.99.1", "translated"),
    ("2002:7f00:1::", "translated"),
    ("64:ff9b::7f00:1", "translated"),
    ("64:ff9b:1::1", "translated"),
]
LOOPBACK = ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1", "::7f00:1"]
PRIVATE = ["10.1.2.3", "172.31.0.1", "192.168.1.1", "100.64.0.1", "fd12::1", "::ffff:10.1.2.3"]
PUBLIC = ["93.184.216.34", "172.32.0.1", "100.128.0.1", "2606:2800::1", "::ffff:93.184.216.34"]


def refuse(policy: Egress, address: str, host: str = "x.test", port: int = 443) -> str | None:
    return policy.refuse(host, address, port, is_service=False)


@pytest.mark.parametrize(("address", "reason"), ALWAYS)
@pytest.mark.parametrize("is_service", [False, True])
def test_some_addresses_are_denied_whatever_is_allowed(
    address: str, reason: str, is_service: bool
) -> None:
    everything = (parse_rule("0.0.0.0/0"), parse_rule("::/0"), parse_rule("x"))
    policy = Egress(allow_loopback=True, allow_private=True, allow=everything)
    assert policy.refuse("x", address, 443, is_service) == reason
    assert reason in REASONS


@pytest.mark.parametrize("address", LOOPBACK)
def test_loopback_needs_the_setting(address: str) -> None:
    assert refuse(STRICT, address) == "loopback"
    assert refuse(Egress(allow_private=True, allow=(parse_rule("127.0.0.0/8"),)), address)
    assert refuse(LAPTOP, address) is None


@pytest.mark.parametrize("address", PRIVATE)
def test_private_addresses_need_a_rule_a_service_or_the_setting(address: str) -> None:
    assert refuse(STRICT, address) == "private"
    assert refuse(LAPTOP, address) is None
    assert STRICT.refuse("erp", address, 443, True) is None
    assert refuse(Egress(allow=(parse_rule("*.test"),)), address) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_public_addresses_need_nothing(address: str) -> None:
    assert refuse(STRICT, address) is None


def test_a_service_is_one_word() -> None:
    assert STRICT.refuse("erp.evil.test", "10.0.0.1", 80, True) == "private"


def test_a_service_of_another_namespace_is_one_word_too() -> None:
    assert STRICT.refuse("erp.other.svc", "10.0.0.1", 80, True) is None
    assert STRICT.refuse("erp.other.svc", "10.0.0.1", 80, False) == "private"
    for host in ("a.erp.other.svc", "erp.svc", "erp.other.svc.test", ".other.svc"):
        assert STRICT.refuse(host, "10.0.0.1", 80, True) == "private"


@pytest.mark.parametrize("port", sorted(FORBIDDEN_PORTS))
def test_some_ports_are_denied_everywhere(port: int) -> None:
    assert refuse(LAPTOP, "93.184.216.34", port=port) == "forbidden-port"


def test_our_own_listeners_are_denied_in_every_clothing() -> None:
    policy = Egress(
        allow_loopback=True,
        allow_private=True,
        own_listeners=frozenset({("127.0.0.1", 8081), ("10.0.0.5", 8080)}),
    )
    for address in ("127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1", "0.0.0.0"):
        assert refuse(policy, address, port=8081) == "own-listener"
    assert refuse(policy, "10.0.0.5", port=8080) == "own-listener"
    assert refuse(policy, "10.0.0.6", port=8080) is None
    assert policy.refuse("x", "10.0.0.6", 8080, True, is_own_machine=True) == "own-listener"
    assert refuse(policy, "127.0.0.1", port=9000) is None


@pytest.mark.parametrize(
    ("rule", "host", "address", "port", "is_allowed"),
    [
        ("10.0.0.0/8", "x", "10.9.9.9", 80, True),
        ("10.0.0.0/8", "x", "192.168.0.1", 80, False),
        ("10.0.0.0/8:443", "x", "10.9.9.9", 80, False),
        ("10.0.0.7", "x", "10.0.0.7", 80, True),
        ("10.0.0.7:80", "x", "10.0.0.8", 80, False),
        ("fd00::/8", "x", "fd12::1", 80, True),
        ("[fd00::/8]:443", "x", "fd12::1", 80, False),
        ("[fd00::/8]:443", "x", "fd12::1", 443, True),
        ("*.shop.svc", "erp.shop.svc", "10.0.0.1", 80, True),
        ("*.shop.svc", "a.erp.shop.svc", "10.0.0.1", 80, True),
        ("*.shop.svc", "ERP.Shop.svc.", "10.0.0.1", 80, True),
        ("*.shop.svc", "shop.svc", "10.0.0.1", 80, False),
        ("*.shop.svc", "evilshop.svc", "10.0.0.1", 80, False),
        ("*.shop.svc", "erp.shop.svc.evil.test", "10.0.0.1", 80, False),
        ("payments.internal:443", "payments.internal", "10.0.0.1", 443, True),
        ("payments.internal:443", "payments.internal", "10.0.0.1", 80, False),
        ("payments.internal", "a.payments.internal", "10.0.0.1", 80, False),
    ],
)
def test_a_rule_opens_what_it_says(
    rule: str, host: str, address: str, port: int, is_allowed: bool
) -> None:
    policy = Egress(allow=(parse_rule(rule),))
    assert (policy.refuse(host, address, port, False) is None) is is_allowed


@pytest.mark.parametrize(
    "text",
    ["", "*", "*.", "a..b", "10.0.0.1/8", "10.0.0.0/33", "a:0", "a:65536", "a:b", "http://a",
     "a/b", "[fd00::/8]:x", "fd00::1/8", "a b", "*.*.a", "999.1.1.1"],
)  # fmt: skip
def test_what_is_no_rule_is_refused_with_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no rule|a port is"):
        parse_rule(text)


def test_what_the_settings_leave_open_depends_on_the_listeners() -> None:
    def policy(on_loopback: bool, **wishes: bool) -> tuple[bool, bool]:
        made = egress_policy(
            EgressSettings(**wishes), is_on_loopback_only=on_loopback, own_listeners=[]
        )
        return made.allow_loopback, made.allow_private

    assert policy(on_loopback=True) == (True, True)
    assert policy(on_loopback=False) == (False, False)
    assert policy(on_loopback=True, allow_loopback=False) == (False, True)
    assert policy(on_loopback=False, allow_private=True) == (False, True)


def test_a_literal_address_is_refused_at_registration_and_a_name_is_not() -> None:
    assert STRICT.refuse_literal("169.254.169.254", 80) == (
        "169.254.169.254 leads to the metadata service of a cloud"
    )
    assert STRICT.refuse_literal("[::ffff:127.0.0.1]", 80) is not None
    assert STRICT.refuse_literal("93.184.216.34", 22) is not None
    assert STRICT.refuse_literal("93.184.216.34", 443) is None
    assert STRICT.refuse_literal("metadata.google.internal", 80) is None
