"""`graft setup`: registers the GitHub App, or takes over one that exists, and writes its credentials to a file.

In a browser: a page on this machine says what the App may do and why, and posts a manifest to GitHub; GitHub
sends the browser back with a code, which buys the credentials once. The page's address holds a random token and
the code has to come with the state that went out, so nobody else can slip in an App of theirs.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import os
import secrets
import webbrowser
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path

import click
import uvloop
from aiohttp import web

from graft import __version__, envfile, ingress, values
from graft.cli import setup_page
from graft.cli.daemon import fail
from graft.config import ImportSettings
from graft.errors import ConfigError, GraftError
from graft.github import AppRefused, GitHub, installations, manifest
from graft.github.manifest import Credentials
from graft.values import Address

CODE_SECONDS = 3600.0

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@click.command()
@click.option(
    "--github", "web_url", default="https://github.com", show_default=True, help="Web address of GitHub."
)
@click.option("--organization", metavar="ORG", help="The organization that shall own the App; else you do.")
@click.option(
    "--url", "public_url", metavar="URL", help="Where GitHub will reach Graft: https://graft.example.com."
)
@click.option(
    "--name", help=f"Name of the App, unique on GitHub, at most {manifest.LONGEST_NAME} characters."
)
@click.option(
    "--import", "importing", is_flag=True, help="Take over an App that exists, from the environment."
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("graft.env"),
    show_default=True,
    help="The environment file to write.",
)
@click.option("--replace", is_flag=True, help="Replace a file that exists; it is kept as .old.")
@click.option("--listen", default="127.0.0.1:0", show_default=True, help="Where the page is served.")
@click.option("--no-browser", is_flag=True, help="Print the page's address and open no browser.")
def setup(
    web_url: str,
    organization: str | None,
    public_url: str | None,
    name: str | None,
    importing: bool,
    output: Path,
    replace: bool,
    listen: str,
    no_browser: bool,
) -> None:
    """Register the GitHub App in a browser and write its credentials to a file.

    With --import, check an App that exists instead: GITHUB_APP_ID, GITHUB_APP_PRIVATE_KEY (PEM, escaped PEM,
    base64 or a path), GITHUB_WEBHOOK_SECRET and, for Enterprise Server, GITHUB_API_URL come from the environment.
    """
    try:
        if not replace:
            envfile.refuse_existing(output)
        if importing:
            uvloop.run(take_over(os.environ, output, replace=replace))
            return
        if public_url is None:
            raise ConfigError(["--url: say where GitHub will reach Graft, such as https://graft.example.com"])
        registration = Registration(
            web_url=_root("--github", web_url),
            organization=organization,
            public_url=_root("--url", public_url),
            name=name or f"graft-{organization or secrets.token_hex(3)}"[: manifest.LONGEST_NAME],
            output=output,
            replace=replace,
        )
        address = values.address(listen)
        if address.host not in ("127.0.0.1", "::1", "localhost"):
            raise ConfigError(
                [
                    "--listen: the page is for this machine alone; forward the port with ssh -L to use another browser"
                ]
            )
        uvloop.run(register(registration, address, browser=not no_browser))
    except ConfigError as error:
        fail(error)
    except values.Invalid as invalid:
        fail(ConfigError([f"--listen: {reason}" for reason in invalid.reasons]))
    except TimeoutError:
        fail(ConfigError(["nothing came back from GitHub within the hour; run graft setup again"]))
    except KeyboardInterrupt:
        raise click.Abort from None


def _root(option: str, text: str) -> str:
    try:
        return values.http_url(text)
    except values.Invalid as invalid:
        raise ConfigError([f"{option}: {reason}" for reason in invalid.reasons]) from None


# ---------------------------------------------------------------------------------------------- in a browser


class Registration:
    """One App to be registered: what the pages answer until the credentials are written."""

    def __init__(
        self,
        *,
        web_url: str,
        organization: str | None,
        public_url: str,
        name: str,
        output: Path,
        replace: bool,
    ) -> None:
        if len(name) > manifest.LONGEST_NAME:
            raise ConfigError([f"--name: at most {manifest.LONGEST_NAME} characters"])
        self.web_url = web_url
        self.organization = organization
        self.public_url = public_url
        self.name = name
        self.output = output
        self.replace = replace
        self.api_url = manifest.api_of(web_url)
        self.state = secrets.token_urlsafe(24)
        self.token = secrets.token_urlsafe(24)
        self.own_url = ""
        self.done = asyncio.Event()
        self._converting = asyncio.Lock()

    @property
    def page_url(self) -> str:
        return f"{self.own_url}/{self.token}"

    def application(self) -> web.Application:
        app = web.Application(middlewares=[self._guard])
        app.router.add_get(f"/{self.token}", self._form)
        app.router.add_get("/created", self._created)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        # A page of somebody else, led here by a name that resolves to this machine, has another host.
        if f"http://{request.host}" != self.own_url:
            raise web.HTTPForbidden(text="wrong host")
        response = await handler(request)
        response.headers.update(_HEADERS)
        # Chromium holds the way back from GitHub, a redirect of the form's answer, to the same rule.
        response.headers["Content-Security-Policy"] = (
            f"default-src 'none'; style-src 'unsafe-inline'; form-action {self.web_url} {self.own_url}; "
            "base-uri 'none'; frame-ancestors 'none'"
        )
        return response

    async def _form(self, _request: web.Request) -> web.StreamResponse:
        document = manifest.manifest(
            name=self.name, public_url=self.public_url, redirect_url=f"{self.own_url}/created"
        )
        return _html(
            setup_page.form_page(
                manifest=document,
                form_url=manifest.form_url(self.web_url, organization=self.organization, state=self.state),
                owner=self.organization or "your account",
                output=str(self.output),
            )
        )

    async def _created(self, request: web.Request) -> web.StreamResponse:
        """GitHub sends the browser here with a code and our state."""
        state = request.query.get("state", "")
        if not hmac.compare_digest(state.encode(), self.state.encode()):
            return _problem("This answer belongs to no set-up that was begun here. Nothing was written.")
        async with self._converting:
            if self.done.is_set():
                return _problem("The App was registered already. Nothing was written again.")
            try:
                found = await manifest.convert(self.api_url, request.query.get("code", ""))
                where = store(found, self.output, api_url=self.api_url, replace=self.replace)
            except ConfigError as error:
                return _problem(error.problems[0])
            except GraftError as error:
                return _problem(
                    f"{error}. Run graft setup again, and delete the App on GitHub if it is there."
                )
            self.done.set()
        click.echo(f"registered {found.slug} (App {found.id}); credentials in {where}")
        return _html(
            setup_page.done_page(
                name=found.slug,
                install_url=f"{self.web_url}/apps/{found.slug}/installations/new",
                output=str(where),
            )
        )


async def register(registration: Registration, address: Address, *, browser: bool) -> None:
    """Serve the pages until the App is registered. Raises TimeoutError after as long as GitHub keeps a code."""
    async with AsyncExitStack() as stack:
        registration.own_url = await ingress.listen(stack, registration.application(), address)
        click.echo(f"Open {registration.page_url}")
        if browser:
            await asyncio.to_thread(webbrowser.open, registration.page_url)
        async with asyncio.timeout(CODE_SECONDS):
            await registration.done.wait()
    click.echo("next: install the App on your repositories, then start Graft (docs/setup.md)")


def _html(page: str, *, status: int = 200) -> web.Response:
    return web.Response(text=page, content_type="text/html", status=status)


def _problem(problem: str) -> web.Response:
    click.echo(f"graft: {problem}", err=True)
    return _html(setup_page.problem_page(problem), status=400)


# --------------------------------------------------------------------------------------------- credentials


def store(found: Credentials, output: Path, *, api_url: str, replace: bool) -> Path:
    """Write the credentials and return where they are.

    GitHub gives them out once: where the file has come to be in the meantime, they go beside it. Raises ConfigError
    when they cannot be used or written.
    """
    try:
        key = values.private_key(found.pem).value
    except values.Invalid:
        raise ConfigError(["GitHub gave out a private key that cannot be used"]) from None
    variables = {
        "GITHUB_APP_ID": str(found.id),
        "GITHUB_APP_SLUG": found.slug,
        # One line, and the same to everybody who reads such files.
        "GITHUB_APP_PRIVATE_KEY": base64.b64encode(key.encode()).decode(),
        "GITHUB_WEBHOOK_SECRET": found.webhook_secret,
        "GITHUB_API_URL": api_url,
    }
    comment = f"The GitHub App {found.slug}, written by graft setup. Keep it secret."
    for where in (output, output.with_name(f"{output.name}.{found.id}")):
        try:
            envfile.write(where, variables, comment=comment, replace=replace and where == output)
        except FileExistsError:
            continue
        except ValueError as error:
            raise ConfigError([f"{error}; choose another webhook secret"]) from None
        except OSError as error:
            raise ConfigError([f"--output: cannot be written ({error.strerror})"]) from None
        return where
    raise ConfigError([f"{output} exists"])


async def take_over(environment: Mapping[str, str], output: Path, *, replace: bool) -> None:
    """Check an App that exists against GitHub and write its credentials.

    Raises ConfigError naming the variable when GitHub does not take them. What the App lacks is said and does not
    stop it: permissions can be added on GitHub afterwards.
    """
    given = ImportSettings.from_env(environment)
    async with GitHub(
        app_id=given.github_app_id,
        private_key=given.github_app_private_key.value,
        api_url=given.github_api_url,
        user_agent=f"graft/{__version__}",
    ) as github:
        try:
            app = await installations.read_app(github.app)
        except AppRefused:
            raise ConfigError(
                [
                    "GITHUB_APP_PRIVATE_KEY: GitHub does not take this key for this GITHUB_APP_ID, or the clock is off"
                ]
            ) from None
        except GraftError as error:
            raise ConfigError([f"GITHUB_API_URL: {error}"]) from None
    if app.id != given.github_app_id:
        raise ConfigError(["GITHUB_APP_ID: the key belongs to another App"])
    found = Credentials(
        id=app.id,
        slug=app.slug,
        pem=given.github_app_private_key.value,
        webhook_secret=given.github_webhook_secret.value,
    )
    where = store(found, output, api_url=given.github_api_url, replace=replace)
    click.echo(f"{app.slug} (App {app.id}) is reachable; credentials in {where}")
    for line in manifest.missing(app.permissions, app.events):
        click.echo(f"  {line}")
