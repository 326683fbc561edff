"""The two ways out: SMTP and HTTP. Each call runs in a thread, and takes a bounded time.

No redirect is followed: the address of a webhook is often a secret, and what it is told is for that
host alone. Errors are said without the address for the same reason.
"""

from __future__ import annotations

import http.client
import json
import smtplib
import ssl
import urllib.error
import urllib.request
from email.message import EmailMessage
from typing import Any

from unisono import __version__
from unisono.kinds.overriding import override
from unisono.kinds.policy.notifications import Mail, is_web_address
from unisono.notify.outbox import Login, NotSent

# Of each step of a connection; mail servers that look for spam are slow to greet.
TIMEOUT_S = 20.0
_MOST_SAID = 200  # letters of a refusal
# Refusals that may be taken back: too busy, too many requests.
_PASSING_CODES = (408, 425, 429)


def send_mail(mail: Mail, login: Login, message: EmailMessage) -> None:
    """Hand a mail to the server; raise NotSent."""
    own_name = mail.sender.rpartition("@")[2]  # looking up our own name may take long
    try:
        secure = _trusting(login.authority)
        with _connected(mail, secure, own_name) as server:
            if mail.tls == "starttls":
                server.starttls(context=secure)
            if login.username:
                server.login(login.username, login.password)
            server.send_message(message)
    except smtplib.SMTPRecipientsRefused as error:
        code, answer = next(iter(error.recipients.values()))
        raise NotSent(_refusal(code, answer), is_final=code >= 500) from None
    except smtplib.SMTPAuthenticationError as error:
        # Tried again, whatever its code: a wrong password may be mended.
        raise NotSent(f"the server does not accept the login ({error.smtp_code})") from None
    except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
        is_final = error.smtp_code >= 500
        raise NotSent(_refusal(error.smtp_code, error.smtp_error), is_final=is_final) from None
    except ssl.SSLError as error:
        raise NotSent(f"no trusted connection to {mail.server}: {error.reason}") from None
    except (OSError, ValueError, smtplib.SMTPException) as error:
        where = f"{mail.server}:{mail.used_port}"
        raise NotSent(f"no mail through {where}: {str(error)[:_MOST_SAID]}") from None


def _connected(mail: Mail, secure: ssl.SSLContext, own_name: str) -> smtplib.SMTP:
    if mail.tls == "implicit":
        return smtplib.SMTP_SSL(
            mail.server, mail.used_port, own_name, timeout=TIMEOUT_S, context=secure
        )
    return smtplib.SMTP(mail.server, mail.used_port, own_name, timeout=TIMEOUT_S)


def _trusting(authority: str) -> ssl.SSLContext:
    made = ssl.create_default_context()
    if authority:
        made.load_verify_locations(cadata=authority)
    return made


def _refusal(code: int, answer: bytes | str) -> str:
    text = answer.decode(errors="replace") if isinstance(answer, bytes) else answer
    return f"the server refuses it: {code} {text[:_MOST_SAID]}"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    @override
    def redirect_request(self, *_: object) -> None:
        return None


def post_document(url: str, document: dict[str, Any], authority: str = "") -> None:
    """Call a webhook; raise NotSent. `authority` is as that of a login."""
    if not is_web_address(url):
        raise NotSent("its address does not begin with http:// or https://", is_final=True)
    headers = {"Content-Type": "application/json", "User-Agent": f"unisono/{__version__}"}
    body = json.dumps(document).encode()
    try:
        secure = urllib.request.HTTPSHandler(context=_trusting(authority))
        opener = urllib.request.build_opener(_NoRedirects, secure)
        request = urllib.request.Request(url, data=body, headers=headers, method="POST")
        with opener.open(request, timeout=TIMEOUT_S):
            pass  # whatever it answers with is not read
    except urllib.error.HTTPError as error:
        with error:
            is_final = 300 <= error.code < 500 and error.code not in _PASSING_CODES
            raise NotSent(f"it answers {error.code}", is_final=is_final) from None
    except urllib.error.URLError as error:
        raise NotSent(f"it cannot be reached: {error.reason}") from None
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise NotSent(f"it cannot be called: {type(error).__name__}") from None
