// Frontend with which people sign in at the operator's identity provider: the endpoints that Claude
// Code calls when it is signed in to a gateway. The access tokens are checked by `auth`.
import { setTimeout as sleep } from "node:timers/promises";
import {
  AccessTokens,
  CLAIM_ACCOUNT_SCHEMAS,
  CLAIM_MAP_SCHEMA,
  defineFrontend,
  LIMIT_SCHEMA,
  OidcClient,
  parseScopedLimit,
  type Context,
  type Infer,
  type RequestHead,
} from "tollgate/plugin";
import { messages } from "tollgate/protocols/messages";
import { acceptOption, extractCredential } from "./client-credential.ts";
import { BrowserFlow } from "./claude-gateway/browser-flow.ts";
import { DeviceGrants, type DeviceGrant } from "./claude-gateway/device-grants.ts";
import { ManagedSettings } from "./claude-gateway/managed-settings.ts";
import { oauthRoutes, PATHS } from "./claude-gateway/oauth-routes.ts";
import { People, type PersonData } from "./claude-gateway/people.ts";
import { protocolPage } from "./claude-gateway/protocol-page.ts";
import { RateLimit } from "./claude-gateway/rate-limit.ts";
import { Seal, SealedRecords } from "./claude-gateway/sealed-records.ts";
import { Sessions, type SessionData } from "./claude-gateway/sessions.ts";
import { SpendLimits, type SpendLimitData } from "./claude-gateway/spend-limits.ts";
import { SIGNALS, TelemetryRelay } from "./claude-gateway/telemetry-relay.ts";
import { WaitingGrants } from "./claude-gateway/waiting-grants.ts";

const anthropic = messages().server!;

const MINUTE_MS = 60_000;
/** How often settings files are read again. */
const SETTINGS_REFRESH_MS = 10_000;
const DAY_MS = 86_400_000;
/** Sign-ins that one address may start, and codes that it may try, per minute. */
const STARTS = 30;
const ATTEMPTS = 20;
/** Sign-ins that wait for approval at the same time, of all addresses. */
const MAX_WAITING = 1_000;

const text = (description: string) => ({ type: "string", minLength: 1, description }) as const;

const OPTIONS = {
  type: "object",
  additionalProperties: false,
  required: ["public_url", "oidc"],
  properties: {
    accept: acceptOption("bearer", "x-api-key"),
    public_url: {
      type: "string",
      pattern: "^https?://[^\\s/?#@]+$",
      "x-expects": "an origin without a path, such as https://gateway.example.com",
      description: "Origin of the gateway as clients and browsers see it",
    },
    oidc: {
      type: "object",
      additionalProperties: false,
      required: ["issuer", "client_id"],
      description: "Identity provider at which people sign in",
      properties: {
        issuer: {
          type: "string",
          pattern: "^https?://[^\\s/?#]+[^\\s?#]*$",
          "x-expects": "a URL such as https://login.example.com",
          "x-origin": true,
          description: "Issuer URL, exactly as the provider reports it",
        },
        client_id: text("Client ID of this gateway at the provider"),
        client_secret: {
          ...text("Client secret of this gateway at the provider. Default: a public client"),
          "x-secret": true,
        },
        scopes: {
          type: "array",
          items: { type: "string", minLength: 1 },
          default: ["openid", "profile", "email", "offline_access"],
          description:
            "Requested scopes. With offline_access, most providers issue the token with which " +
            "the gateway asks again at each refresh",
        },
        parameters: {
          type: "object",
          additionalProperties: { type: "string" },
          default: { prompt: "consent" },
          description:
            "Further parameters of the authorization request, such as access_type: offline",
        },
      },
    },
    map: CLAIM_MAP_SCHEMA,
    ...CLAIM_ACCOUNT_SCHEMAS,
    groups: { ...text("Claim with the groups of a person"), default: "groups" },
    limits: { type: "array", items: LIMIT_SCHEMA, description: "Limits of each person" },
    token_ttl_s: {
      type: "integer",
      minimum: 60,
      maximum: 86_400,
      default: 3_600,
      description: "Lifetime of an access token, in seconds",
    },
    session_days: {
      type: "integer",
      minimum: 1,
      maximum: 365,
      default: 30,
      description: "Days after which a person has to sign in again",
    },
    poll_interval_s: {
      type: "integer",
      minimum: 1,
      maximum: 60,
      default: 5,
      description: "Minimum time between two requests of a waiting device, in seconds",
    },
    login_notice: {
      type: "string",
      maxLength: 500,
      description: "Text that clients show next to the code",
    },
    settings: {
      type: "array",
      default: [],
      description:
        "Files with settings of Claude Code, which signed-in clients apply. The first entry that " +
        "applies to the person's account is used",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["file"],
        properties: {
          account: {
            type: "string",
            minLength: 1,
            "x-account": true,
            description: "Account that the file is for. Default: every account",
          },
          file: {
            type: "string",
            minLength: 1,
            "x-path": true,
            description: "JSON file, relative to gateway.yaml. It is read at each reload",
          },
        },
      },
    },
    telemetry: {
      type: "object",
      additionalProperties: false,
      required: ["url"],
      description: "Collector to which the telemetry of clients is forwarded. Default: none",
      properties: {
        url: {
          type: "string",
          pattern: "^https?://[^\\s/?#@]+[^\\s?#]*$",
          "x-expects": "a URL such as https://collector.example.com",
          "x-origin": true,
          description: "Base URL for OTLP over HTTP, without /v1/metrics",
        },
        headers: {
          type: "object",
          additionalProperties: { type: "string", "x-secret": true },
          description: "Headers for the collector, such as its key",
        },
        signals: {
          type: "array",
          uniqueItems: true,
          items: { enum: SIGNALS },
          default: ["metrics"],
          description:
            "Forwarded signals: metrics, logs, traces. Logs and traces may contain commands and " +
            "file paths",
        },
      },
    },
    spend_limits: {
      type: "boolean",
      default: false,
      description:
        "Whether the admin listener serves /v1/organizations/spend_limits, with which admins set " +
        "the spend limits of people, in the format of Anthropic's Admin API",
    },
    behind_proxy: {
      type: "boolean",
      default: false,
      description:
        "Whether a reverse proxy in front of the gateway appends the client's address to " +
        "X-Forwarded-For. Rate limits then count by that address",
    },
  },
} as const;
type Options = Infer<typeof OPTIONS>;

export default defineFrontend({
  api: 1,
  name: "claude-gateway",
  summary: "Sign in people with an identity provider, for Claude Code and other clients",
  stability: "experimental",
  needs: { files: ({ settings }) => settings.map(({ file }) => file) },
  options: OPTIONS,
  async setup(options, ctx) {
    const { public_url: origin } = options;
    const { people, spendLimits, sweep, ...oauth } = createSignIn(options, ctx);
    const relay = new TelemetryRelay(ctx, options.telemetry);
    const settings = await ManagedSettings.load(options.settings, ctx, relay.env(origin));
    ctx.runEvery(MINUTE_MS, sweep);
    if (options.settings.length > 0)
      ctx.runEvery(SETTINGS_REFRESH_MS, () => settings.refresh(ctx.log));
    return {
      extractCredential: (headers) => extractCredential(headers, options.accept),
      encodeFault: (fault, x) => anthropic.encodeFault(fault, { id: x.id }),
      routes: [
        ...oauthRoutes(oauth),
        {
          method: "GET",
          path: "/protocol",
          allowUnauthenticated: true,
          handle: () => ({
            status: 200,
            body: Buffer.from(protocolPage(origin)),
            headers: { "content-type": "text/markdown; charset=utf-8" },
          }),
        },
        ...(options.spend_limits ? spendLimits.routes() : []),
        { method: "GET", path: "/managed/settings", handle: (x) => settings.serve(x) },
        ...SIGNALS.map((signal) => ({
          method: "POST",
          path: `/v1/${signal}`,
          body: "bytes" as const,
          handle: (x: RequestHead, body: Buffer) => relay.accept(signal, x, body),
        })),
      ],
      commands: {
        restore: {
          summary: "Admit a person again whose key was revoked",
          role: "operator",
          input: {
            type: "object",
            additionalProperties: false,
            required: ["id"],
            properties: { id: text("ID of the person's key") },
          },
          run: async ({ id }) => ({ restored: await people.restore(String(id)) }),
        },
      },
    };
  },
});

/** Creates the objects of the sign-in, which share the store's records. */
function createSignIn(options: Options, ctx: Context) {
  const { public_url: origin, oidc, token_ttl_s: ttl, poll_interval_s: intervalS } = options;
  const now = Date.now;
  const seal = new Seal(ctx.deriveSecret("sign-in"));
  const records = <Data>(kind: string) =>
    new SealedRecords<Data>({ jobs: () => ctx.jobs, seal, kind, now });
  const grantRecords = records<DeviceGrant>("device-grant");
  const sessionRecords = records<SessionData>("sign-in-session");
  const tokens = new AccessTokens(ctx);
  const client = new OidcClient(
    {
      issuer: oidc.issuer,
      clientId: oidc.client_id,
      clientSecret: oidc.client_secret,
      callbackUrl: origin + PATHS.callback,
      scopes: [...new Set(["openid", ...oidc.scopes])],
      parameters: oidc.parameters,
    },
    ctx.fetch,
  );
  const limits = (options.limits ?? []).map((limit) => parseScopedLimit(limit, ""));
  const spendLimits = new SpendLimits({
    ctx,
    records: records<SpendLimitData>("spend-limit"),
    seal,
    people: () => people,
    defaults: limits,
    now,
  });
  const people: People = new People({
    ctx,
    prefix: ctx.id.slice(ctx.id.indexOf(".") + 1),
    tokens,
    records: records<PersonData>("person"),
    seal,
    map: options.map,
    accounts: { byClaim: options.accounts, default: options.account },
    groupsClaim: options.groups,
    limitsOf: (person) => spendLimits.limitsOf(person),
    now,
  });
  const sessions = new Sessions({
    ctx,
    records: sessionRecords,
    seal,
    tokens,
    people,
    oidc: client,
    oidcIssuer: oidc.issuer,
    issuer: origin,
    tokenTtlMs: ttl * 1_000,
    sessionTtlMs: options.session_days * DAY_MS,
    now,
    sleep,
  });
  // The counts survive a reload.
  const limitFor = (name: string, max: number, windowMs: number): RateLimit =>
    ctx.shared(name, () => new RateLimit(max, windowMs));
  const grants = new DeviceGrants({
    records: grantRecords,
    seal,
    waiting: ctx.shared("waiting grants", () => new WaitingGrants(MAX_WAITING)),
    now,
    intervalMs: intervalS * 1_000,
  });
  const addressOf = (x: RequestHead): string =>
    options.behind_proxy ? forwardedAddressOf(x) : x.address;
  const browser = new BrowserFlow({
    ctx,
    grants,
    oidc: client,
    seal,
    origin: origin.toLowerCase(),
    attempts: limitFor("attempts", ATTEMPTS, MINUTE_MS),
    addressOf,
  });
  return {
    ctx,
    origin,
    people,
    spendLimits,
    grants,
    sessions,
    browser,
    starts: limitFor("starts", STARTS, MINUTE_MS),
    intervalS,
    notice: options.login_notice,
    addressOf,
    sweep: async () => {
      if (ctx.jobs) for (const each of [grantRecords, sessionRecords]) await each.sweep(ctx.id);
    },
  };
}

/** Returns the address that the nearest proxy reports. Clients can write the others themselves. */
function forwardedAddressOf(x: RequestHead): string {
  const header = x.headers["x-forwarded-for"];
  const last = [header ?? ""].flat().join(",").split(",").at(-1)?.trim();
  return last === undefined || last === "" ? x.address : last;
}
