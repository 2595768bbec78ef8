// A gateway with the frontend `claude-gateway`, a real identity provider, and a device that signs in
// with exactly the requests that Claude Code sends.
import { expect } from "vitest";
import {
  Browser,
  SECRET,
  signingKey,
  startIdentityProvider,
  type IdentityProvider,
} from "../e2e/admin/identity-provider.ts";
import { startInProcess, type InProcessGateway, type InProcessOptions } from "./in-process.ts";
import { freePort } from "./process/ports.ts";

/** Form of a request as Claude Code 2.1.332 sends it. */
const CLIENT_HEADERS = {
  "content-type": "application/x-www-form-urlencoded",
  "user-agent": "claude-code/2.1.332",
};
export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

export interface DeviceAuthorization {
  readonly device_code: string;
  readonly user_code: string;
  readonly verification_uri: string;
  readonly verification_uri_complete: string;
  readonly expires_in: number;
  readonly interval: number;
}
export interface Tokens {
  readonly access_token: string;
  readonly refresh_token: string;
  readonly expires_in: number;
  readonly email?: string;
}
export interface OauthAnswer<T = Tokens> {
  readonly status: number;
  readonly headers: Headers;
  readonly body: T & { readonly error?: string; readonly error_description?: string };
}

let addresses = 0;
/** An address that no other request has, because sign-ins are limited by address. */
const nextAddress = (): string => `10.${(++addresses >> 8) & 255}.${addresses & 255}.1`;

/** Sends a form to a path of the gateway. */
export async function postForm<T = Tokens>(
  url: string,
  form: Record<string, string>,
  address = nextAddress(),
): Promise<OauthAnswer<T>> {
  const res = await fetch(url, {
    method: "POST",
    headers: { ...CLIENT_HEADERS, "x-forwarded-for": address },
    body: new URLSearchParams(form),
    redirect: "error",
  });
  return { status: res.status, headers: res.headers, body: (await res.json()) as never };
}

/** Starts the device flow, as `claude auth login` does. */
export const startDevice = async (url: string): Promise<DeviceAuthorization> => {
  const { status, body } = await postForm<DeviceAuthorization>(
    `${url}/oauth/device_authorization`,
    { surface: "claude_code" },
  );
  expect(status).toBe(200);
  return body;
};

export const poll = (url: string, device_code: string): Promise<OauthAnswer> =>
  postForm(`${url}/oauth/token`, { grant_type: DEVICE_GRANT, device_code });

export const refresh = (url: string, refresh_token: string): Promise<OauthAnswer> =>
  postForm(`${url}/oauth/token`, { grant_type: "refresh_token", refresh_token });

/** Posts a form of the gateway's own page. */
export const submit = (
  browser: Browser,
  url: string,
  path: string,
  form = {},
  address = nextAddress(),
): Promise<Response> =>
  browser.go(`${url}${path}`, form, "text/html", {
    origin: url,
    "sec-fetch-site": "same-origin",
    "x-forwarded-for": address,
  });

/** Enters the code and signs in, up to the page that asks for approval. */
export async function identify(
  { idp, url }: Pick<SignInSetup, "idp" | "url">,
  userCode: string,
  person: string,
  browser = new Browser(),
): Promise<{ browser: Browser; back: string; page: Response }> {
  const asked = await submit(browser, url, "/device", { user_code: userCode });
  expect(asked.status).toBe(303);
  const back = await idp.signIn(browser, asked.headers.get("location")!, person, url);
  return { browser, back, page: await browser.go(back, undefined, "text/html") };
}

/** Runs the whole device flow. */
export async function signIn(
  at: Pick<SignInSetup, "idp" | "url">,
  person: string,
): Promise<Tokens> {
  const device = await startDevice(at.url);
  const { browser, page } = await identify(at, device.user_code, person);
  expect(page.status).toBe(200);
  expect((await submit(browser, at.url, "/device/approve")).status).toBe(200);
  const { status, body } = await poll(at.url, device.device_code);
  expect([status, body.error]).toEqual([200, undefined]);
  return body;
}

export interface SignInSetup extends AsyncDisposable {
  readonly gateway: InProcessGateway;
  readonly idp: IdentityProvider;
  readonly url: string;
  /** gateway.yaml, with further options of the frontend. */
  readonly yaml: (options?: string) => string;
}

/** Accounts by group, and a person's limits. */
export const OPTIONS = `
      map: { account: groups }
      accounts: { platform: platform, research: research }
      limits: [requests=50/day]
      behind_proxy: true
`;

/** Starts a gateway and a provider. */
export async function startSignIn(
  of: {
    readonly options?: string;
    readonly frontends?: readonly string[];
    readonly rest?: string;
    readonly more?: Omit<InProcessOptions, "yaml">;
  } = {},
): Promise<SignInSetup> {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const idp = await startIdentityProvider([`${url}/oauth/callback`], await signingKey("first"));
  const frontends = of.frontends ?? ["messages", "chat-completions", "usage"];
  const yaml = (options = of.options ?? OPTIONS) => `frontends:
${frontends.map((name) => `  - ${name}`).join("\n")}
  - use: claude-gateway
    with:
      public_url: ${url}
      oidc: { issuer: "${idp.issuer}", client_id: tollgate, client_secret: ${SECRET} }
${options.replace(/^\n/, "")}
middleware: [auth]
${of.rest ?? DEMO}`;
  try {
    const listen = `origins: ["${url}"]`;
    const gateway = await startInProcess({ ...of.more, listen, port, yaml: yaml() });
    return {
      gateway,
      idp,
      url,
      yaml,
      async [Symbol.asyncDispose]() {
        await gateway[Symbol.asyncDispose]();
        await idp[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await idp[Symbol.asyncDispose]();
    throw error;
  }
}

const DEMO = `
accounts: { acme: {}, platform: { parent: acme }, research: { parent: acme } }
providers: { demo: { use: demo } }
`;

/** Sends a request to a model with this credential. */
export const ask = (url: string, credential: string): Promise<Response> =>
  fetch(`${url}/v1/messages`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${credential}`,
      "content-type": "application/json",
      "anthropic-version": "2023-06-01",
    },
    body: JSON.stringify({
      model: "demo/echo",
      max_tokens: 10,
      messages: [{ role: "user", content: "Hello" }],
    }),
  });
