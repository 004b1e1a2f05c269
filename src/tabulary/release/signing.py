"""Signing: Ed25519 keys in files, signatures over bytes, and the name and fingerprint that identify a key.

Signed bytes begin with the name of their kind, so a signature over one kind is never valid for another.
"""

import base64
import binascii
import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulary.errors import MissingExtra, UnusableKey
from tabulary.private_files import create_private_file, read_private_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

PASSPHRASE_VARIABLE = "TABULARY_KEY_PASSPHRASE"
"""The environment variable that a passphrase is read from where none is given."""

_NAMED = "Signer: "
_LONGEST_NAME = 200
_LONGEST_FILE = 1 << 14
_KEY_BYTES, _SIGNATURE_BYTES = 32, 64


@dataclass(frozen=True)
class PublicKey:
    """A public key and the name of its signer. Only the publisher of the key can confirm the name.

    >>> key = PublicKey("Statistics Office", bytes(32))
    >>> key.fingerprint
    '66687aadf862bd776c8fc18b8e9f8e20'
    >>> PublicKey.from_description(key.describe()) == key
    True
    """

    name: str
    raw: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if (
            not isinstance(self.name, str)
            or not self.name
            or self.name != self.name.strip()
            or not self.name.isprintable()
            or len(self.name) > _LONGEST_NAME
        ):
            raise UnusableKey(
                f"a signer's name must be printable text on one line, with at most {_LONGEST_NAME} "
                "characters and without outer spaces."
            )
        if not isinstance(self.raw, bytes) or len(self.raw) != _KEY_BYTES:
            raise UnusableKey(f"a public key has {_KEY_BYTES} bytes.")

    @property
    def fingerprint(self) -> str:
        """The first half of the key's SHA-256 in hexadecimal digits: short enough to read aloud, and unique."""
        return hashlib.sha256(self.raw).hexdigest()[:32]

    def describe(self) -> dict[str, str]:
        """Return the name and the key as plain data."""
        return {"name": self.name, "public_key": base64.b64encode(self.raw).decode()}

    @classmethod
    def from_description(cls, description: object) -> "PublicKey":
        """Return the key that `describe` wrote; refuse anything else."""
        match description:
            case {"name": str(name), "public_key": str(text), **rest} if not rest:
                if (raw := _decoded(text, _KEY_BYTES)) is not None:
                    return cls(name, raw)
        raise UnusableKey("this is not the description of a public key that Tabulary writes.")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "PublicKey":
        """Return the key in a file that `SigningKey.create` wrote: a name, and a public key in PEM."""
        file = Path(path)
        try:
            with file.open("rb") as opened:
                content = opened.read(_LONGEST_FILE + 1)
        except OSError as problem:
            raise UnusableKey(
                f"the public key {str(file)!r} cannot be read: {problem.strerror}. Nothing was checked."
            ) from None
        name, pem = _parted(content, f"{str(file)!r} is not a public key that `tabulary key create` wrote")
        serialization, ed25519 = _package()
        try:
            found = serialization.load_pem_public_key(pem)
        except Exception:
            # Any error of the package: the file may come from anywhere.
            found = None
        if not isinstance(found, ed25519.Ed25519PublicKey):
            raise UnusableKey(f"{str(file)!r} holds no Ed25519 public key. Nothing was checked.")
        return cls(name, found.public_bytes_raw())

    def holds(self, signature: bytes, message: bytes) -> bool:
        """Return whether a signature over these bytes was made with the private half of this key."""
        _, ed25519 = _package()
        from cryptography.exceptions import InvalidSignature

        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.raw).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    def __str__(self) -> str:
        return f"{self.name}, key {self.fingerprint}"


@dataclass(frozen=True)
class SigningKey:
    """A private key and the name of its owner. Made by `create` or `read`; it never shows the key.

    >>> SigningKey.generate("Statistics Office").public.name
    'Statistics Office'
    """

    public: PublicKey
    _private: "Ed25519PrivateKey" = field(repr=False, compare=False)

    @classmethod
    def generate(cls, name: str) -> "SigningKey":
        """Return a new key, drawn from the operating system."""
        _, ed25519 = _package()
        private = ed25519.Ed25519PrivateKey.generate()
        return cls(PublicKey(name, private.public_key().public_bytes_raw()), private)

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], name: str, *, passphrase: str | None = None
    ) -> "SigningKey":
        """Return a new key, written to `path` for its owner alone, and its public half to `path` + ".pub".

        Nothing is overwritten. With a passphrase the private half is encrypted.
        """
        made = cls.generate(name)
        serialization, _ = _package()
        file, beside = Path(path), public_file(path)
        if beside.exists():
            raise UnusableKey(f"{str(beside)!r} already exists, and a key is never overwritten.")
        private = made._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.BestAvailableEncryption(passphrase.encode())
            if passphrase
            else serialization.NoEncryption(),
        )
        head = f"{_NAMED}{name}\n".encode()
        create_private_file(file, head + private, "a key", UnusableKey)
        public = made._private.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        try:
            with beside.open("xb") as opened:
                opened.write(head + public)
        except OSError as problem:
            file.unlink()
            raise UnusableKey(
                f"no key can be created at {str(beside)!r}: {problem.strerror}. Neither half was kept."
            ) from None
        return made

    @classmethod
    def read(cls, path: str | os.PathLike[str], *, passphrase: str | None = None) -> "SigningKey":
        """Return the key in a file that only its owner may read; refuse any other file.

        Where no passphrase is given, it is read from the environment variable TABULARY_KEY_PASSPHRASE.
        """
        file = Path(path)
        content = read_private_file(file, "the signing key", UnusableKey)
        name, pem = _parted(content, f"{str(file)!r} is not a key that `tabulary key create` wrote")
        serialization, ed25519 = _package()
        given = (passphrase or os.environ.get(PASSPHRASE_VARIABLE)) if is_encrypted(content) else None
        if is_encrypted(content) and not given:
            raise UnusableKey(
                f"the signing key {str(file)!r} has a passphrase. Nothing was signed. Put it into the environment "
                f"variable {PASSPHRASE_VARIABLE}."
            )
        try:
            found = serialization.load_pem_private_key(pem, given.encode() if given else None)
        except Exception:
            # Any error of the package: its message may contain the content of the file.
            found = None
        if not isinstance(found, ed25519.Ed25519PrivateKey):
            raise UnusableKey(
                f"{str(file)!r} cannot be read as an Ed25519 private key"
                f"{', or the passphrase is not its own' if given else ''}. Nothing was signed."
            )
        return cls(PublicKey(name, found.public_key().public_bytes_raw()), found)

    def sign(self, message: bytes) -> bytes:
        """Return the signature over these bytes: 64 bytes, the same every time."""
        return bytes(self._private.sign(message))


def signing_key_of(given: SigningKey | str | os.PathLike[str] | None) -> SigningKey | None:
    """Return a signing key from a key or from the path of its file."""
    return given if given is None or isinstance(given, SigningKey) else SigningKey.read(given)


def public_key_of(given: PublicKey | str | os.PathLike[str] | None) -> PublicKey | None:
    """Return a public key from a key or from the path of its file."""
    return given if given is None or isinstance(given, PublicKey) else PublicKey.read(given)


def public_file(path: str | os.PathLike[str]) -> Path:
    """Return the path of the public half of a key.

    >>> public_file("office.pem").name
    'office.pem.pub'
    """
    file = Path(path)
    return file.with_name(f"{file.name}.pub")


def is_encrypted(content: bytes) -> bool:
    """Return whether the private key in a file's content needs a passphrase."""
    return b"BEGIN ENCRYPTED PRIVATE KEY" in content


def signature_text(signature: bytes) -> str:
    """Return a signature as one word of base64."""
    return base64.b64encode(signature).decode()


def signature_from_text(text: str) -> bytes | None:
    """Return the signature that a word of base64 holds; None if it holds none or its form is not canonical."""
    return _decoded(text, _SIGNATURE_BYTES)


def _decoded(text: str, length: int) -> bytes | None:
    try:
        raw = base64.b64decode(text.encode("ascii"), validate=True)
    except (UnicodeEncodeError, binascii.Error):
        return None
    return raw if len(raw) == length and base64.b64encode(raw).decode() == text else None


def _parted(content: bytes, refusal: str) -> tuple[str, bytes]:
    """Return the name on the first line of a key file, and the rest."""
    first, _, rest = content[:_LONGEST_FILE].partition(b"\n")
    try:
        line = first.decode()
    except UnicodeDecodeError:
        line = ""
    if not line.startswith(_NAMED) or len(content) > _LONGEST_FILE:
        raise UnusableKey(f"{refusal}: its first line names no signer. Nothing was signed or checked.")
    return line.removeprefix(_NAMED), rest


def _package() -> tuple[Any, Any]:
    """Return the two modules of the package that implements Ed25519."""
    try:
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtra(
            "signatures need the package cryptography. Install it: pip install 'tabulary[sign]'. Nothing was signed "
            "or checked."
        ) from None
    return serialization, ed25519
