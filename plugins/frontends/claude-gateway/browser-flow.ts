// The part of a sign-in that happens in a browser: the person enters the code, signs in at the
// identity provider, and approves the device. A cookie binds all steps to one browser.
import { randomBytes } from "node:crypto";
import {
  claimAt,
  getFault,
  type Context,
  type OidcClient,
  type RequestHead,
  type RouteResponse,
} from "tollgate/plugin";
import { GRANT_TTL_S, hashOf, type DeviceGrants, type StoredGrant } from "./device-grants.ts";
import { approvalPage, codePage, messagePage } from "./device-page.ts";
import type { RateLimit } from "./rate-limit.ts";
import type { Seal } from "./sealed-records.ts";

export interface BrowserFlowOptions {
  readonly ctx: Pick<Context, "log">;
  readonly grants: DeviceGrants;
  readonly oidc: OidcClient;
  readonly seal: Seal;
  /** Origin of the gateway as browsers see it. */
  readonly origin: string;
  readonly attempts: RateLimit;
  readonly addressOf: (x: RequestHead) => string;
}

interface Flow {
  readonly grant: string;
  readonly token: string;
}

const PURPOSE = "browser";

/** Titles and texts of the last page. */
const DECIDED = {
  approved: ["Device approved", "Return to your terminal. You can close this page."],
  denied: ["Device denied", "The device gets no access. You can close this page."],
} as const;
const PROVIDER_FAILED = [
  "Sign-in failed",
  "The identity provider returned no valid response. Start the sign-in again, or ask your operator to check the gateway log.",
] as const;

export class BrowserFlow {
  readonly cookieName: string;
  readonly #of: BrowserFlowOptions;
  readonly #isSecure: boolean;

  constructor(of: BrowserFlowOptions) {
    this.#of = of;
    this.#isSecure = of.origin.startsWith("https:");
    this.cookieName = this.#isSecure ? "__Host-device-sign-in" : "device-sign-in";
  }

  showForm(x: RequestHead): RouteResponse {
    return codePage((x.query.get("user_code") ?? "").slice(0, 40));
  }

  /** Handles the user code, and sends the browser to the identity provider. */
  async submitCode(x: RequestHead, form: URLSearchParams): Promise<RouteResponse> {
    const rejected = this.#rejectOtherSite(x);
    if (rejected) return rejected;
    const wait = this.#of.attempts.take(this.#of.addressOf(x));
    if (wait !== undefined)
      return codePage("", `Too many attempts. Wait ${wait} s before the next one.`, 429);
    const code = form.get("user_code") ?? "";
    const grant = await this.#of.grants.findByUserCode(code);
    if (!grant) return codePage("", "The code is unknown or has expired. Check it.", 400);
    const token = randomBytes(32).toString("base64url");
    const change = { state: "pending", browser: hashOf(token), person: undefined } as const;
    if (!(await this.#of.grants.change(grant, change)))
      return codePage("", "The code was used in the meantime.", 409);
    const location = await this.#atProvider(() => this.#of.oidc.authorizationUrl(token));
    if (typeof location !== "string") return location;
    const flow: Flow = { grant: grant.id, token };
    const cookie = this.#formatCookie(this.#of.seal.seal(PURPOSE, JSON.stringify(flow)));
    return {
      status: 303,
      headers: { location, "set-cookie": cookie, "cache-control": "no-store" },
    };
  }

  /** Handles the return from the identity provider. */
  async finish(x: RequestHead): Promise<RouteResponse> {
    const flow = this.#flowOf(x);
    const tokens = await this.#atProvider(() =>
      this.#of.oidc.finish({ query: x.query, flowToken: flow?.token }),
    );
    if ("status" in tokens) return tokens;
    const grant = await this.#grantOf(flow);
    if (!grant) return this.#expired();
    const { claims, refreshToken } = tokens;
    const person = { claims, refreshToken: refreshToken ?? undefined };
    if (!(await this.#of.grants.change(grant, { state: "identified", person })))
      return this.#expired();
    const email = claimAt(claims, "email");
    return approvalPage({ ...grant.data, name: String(email ?? claims["sub"]) });
  }

  /** Handles the person's decision. */
  async decide(x: RequestHead, state: "approved" | "denied"): Promise<RouteResponse> {
    const rejected = this.#rejectOtherSite(x);
    if (rejected) return rejected;
    const grant = await this.#grantOf(this.#flowOf(x));
    const change = state === "denied" ? { state, person: undefined } : { state };
    if (grant?.data.state !== "identified" || !(await this.#of.grants.change(grant, change)))
      return this.#expired();
    this.#of.ctx.log.info({ state }, "device sign-in decided");
    const [title, text] = DECIDED[state];
    return messagePage(title, text, { cookie: this.#formatCookie(undefined) });
  }

  /** A form of another site could otherwise approve a device. */
  #rejectOtherSite({ headers }: RequestHead): RouteResponse | undefined {
    const site = headers["sec-fetch-site"];
    const isOwn =
      headers.origin?.toLowerCase() === this.#of.origin &&
      (site === undefined || site === "same-origin" || site === "none");
    return isOwn
      ? undefined
      : messagePage(
          "Request rejected",
          "The request came from another web page. Open the link of your terminal again.",
          { status: 403 },
        );
  }

  #flowOf({ cookies }: RequestHead): Flow | undefined {
    const text = this.#of.seal.open(PURPOSE, cookies[this.cookieName] ?? "");
    return text === undefined ? undefined : (JSON.parse(text) as Flow);
  }

  async #grantOf(flow: Flow | undefined): Promise<StoredGrant | undefined> {
    return flow && this.#of.grants.findForBrowser(flow.grant, flow.token);
  }

  #expired(): RouteResponse {
    return messagePage(
      "Sign-in expired",
      "The sign-in was started elsewhere, was already used, or is older than 10 minutes. Start again in your terminal.",
      { status: 400 },
    );
  }

  /** Logs the details of an error, and returns a page with a short message. */
  async #atProvider<T>(work: () => Promise<T>): Promise<T | RouteResponse> {
    try {
      return await work();
    } catch (error) {
      const fault = getFault(error);
      if (fault?.code === "oidc_refused")
        return messagePage("Sign-in failed", fault.message, { status: 400 });
      this.#of.ctx.log.warn({ err: error }, "identity provider sign-in failed");
      const [title, text] = PROVIDER_FAILED;
      return messagePage(title, text, { status: 502 });
    }
  }

  /** `SameSite=Lax`: the browser sends it when the provider redirects back. */
  #formatCookie(value: string | undefined): string {
    return [
      `${this.cookieName}=${value ?? ""}`,
      "Path=/",
      "HttpOnly",
      "SameSite=Lax",
      `Max-Age=${value === undefined ? 0 : GRANT_TTL_S}`,
      ...(this.#isSecure ? ["Secure"] : []),
    ].join("; ");
  }
}
