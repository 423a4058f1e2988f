from make_client import PACKAGE, client


def test_client_is_what_the_script_makes_of_aio() -> None:
    made = client((PACKAGE / "aio.py").read_text())
    assert (PACKAGE / "client.py").read_text() == made, "run `python clients/python/tools/make_client.py`"
