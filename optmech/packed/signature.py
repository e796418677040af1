"""Ed25519 signatures of packed files, by the cryptography package; keys are PEM files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optmech.base.needed import needed
from optmech.errors import ProblemError, VerificationError
from optmech.packed.file import envelope, signed_bytes
from optmech.reading.bounded import read_bytes, translated

_MOST_KEY = 2**16


def sign(payload: bytes, key: str | Path) -> bytes:
    """A plain file inside its signature with an unencrypted private key. Raises ProblemError where
    that is no such key, or cryptography is not installed."""
    serialization = _serialization("sign")
    with translated(key, "holds no private key in PEM form", _remedy("genpkey")):
        private = serialization.load_pem_private_key(read_bytes(key, _MOST_KEY), password=None)
    _require_ed25519(private, "sign", key)
    return envelope(payload, private.sign(signed_bytes(payload)))


def verify(payload: bytes, signature: bytes, key: str | Path, where: str) -> None:
    """Raises VerificationError unless the signature is of this public key."""
    serialization = _serialization("signer")
    with translated(key, "holds no public key in PEM form", _remedy("pkey -pubout")):
        public = serialization.load_pem_public_key(read_bytes(key, _MOST_KEY))
    _require_ed25519(public, "verify", key)
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(signature, signed_bytes(payload))
    except InvalidSignature as error:
        raise VerificationError(
            "the signature is not that of the key given",
            where=where,
            remedy=f"Do not use the file, or check that {key} is its signer's key",
        ) from error


def _serialization(where: str) -> Any:
    needed("cryptography", "sign", where=where)
    from cryptography.hazmat.primitives import serialization

    return serialization


def _require_ed25519(key: Any, method: str, path: str | Path) -> None:
    if not hasattr(key, method) or "Ed25519" not in type(key).__name__:
        raise ProblemError("is no Ed25519 key", where=str(path), remedy=_remedy("genpkey"))


def _remedy(command: str) -> str:
    return f"Make one with openssl {command} (-algorithm ed25519)"
