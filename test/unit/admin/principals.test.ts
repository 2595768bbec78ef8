// Principals of the admin API: data of one is keyed by issuer, subject, role, and account. Display
// names are drawn from a small alphabet, so that most generated principals share theirs.
import { Readable } from "node:stream";
import * as fc from "fast-check";
import { expect, it } from "vitest";
import type { AdminConfig, OidcConfig } from "../../../src/config/gateway-config.ts";
import { AdminApi } from "../../../src/admin/http/admin-api.ts";
import { AdminPrincipals } from "../../../src/runtime/access/admin-principals.ts";
import { principalOfClaims } from "../../../src/admin/http/oidc-sign-in.ts";
import { Sessions } from "../../../src/runtime/access/sessions.ts";
import {
  createAdminCommands,
  createSessionCommands,
} from "../../../src/admin/commands/admin-commands.ts";
import { CommandAudit } from "../../../src/admin/dispatch/command-audit.ts";
import {
  CommandDispatcher,
  AccessCounter,
} from "../../../src/admin/dispatch/command-dispatcher.ts";
import {
  type CommandPrincipal,
  principalId,
  type Principal,
} from "../../../src/runtime/access/principal.ts";
import { mintKey } from "../../../src/lib/api-key.ts";
import { getFault } from "../../../src/model/error.ts";
import type { KeyRecord } from "../../../src/plugin/store/account.ts";
import type { Role } from "../../../src/plugin/role.ts";
import { trialCount } from "../../kit/law-effort.ts";

const NAMES = ["anna", "Anna", "ann@example.com"];
const ACCOUNTS = ["acme", "sales", "a:owner", "%2F"];
const ISSUERS = ["https://one.example", "https://one.example:8", "https://two.example"];

interface Drawn {
  readonly kind: "file" | "token" | "oidc";
  readonly name: string;
  readonly subject: string;
  readonly issuer: string;
  readonly role: Role;
  readonly account: string | undefined;
}

const drawn: fc.Arbitrary<Drawn> = fc.record({
  kind: fc.constantFrom("file" as const, "token" as const, "oidc" as const),
  name: fc.constantFrom(...NAMES),
  subject: fc.constantFrom("s1", "s2", "owner:s1", "s1#8"),
  issuer: fc.constantFrom(...ISSUERS),
  role: fc.constantFrom("operator" as const, "owner" as const),
  account: fc.option(fc.constantFrom(...ACCOUNTS), { nil: undefined }),
});

const TOKEN = "file-token-0123456789abcdef-";

/** The admin side of a gateway, with a command that creates a secret. */
function site() {
  const tokens: AdminConfig["tokens"][number][] = [];
  const records = new Map<string, KeyRecord>();
  const now: { oidc: OidcConfig | undefined } = { oidc: undefined };
  const admin = (): AdminConfig => ({
    address: { host: "127.0.0.1", port: 0 },
    hosts: [],
    behindProxy: false,
    tls: undefined,
    tokens,
    oidc: now.oidc,
  });
  const paths = new Map<string, readonly string[]>();
  const world = { accountPath: (of: string) => paths.get(of) ?? [of], listKeys: async () => [] };
  let made = 0;
  const commands = {
    "keys.create": async ({ account = null }: { account?: unknown }) => ({
      secret: `secret-${++made}`,
      key: { account },
      warnings: [],
    }),
  };
  const holders = new AdminPrincipals({
    adminConfig: admin,
    findRecord: async (digest) => records.get(digest),
    now: () => 1_000,
  });
  const gate = new CommandDispatcher({
    commands: commands as never,
    pluginCommands: { find: () => undefined, all: () => [] },
    scopes: world,
    audit: new CommandAudit({
      auditLog: undefined,
      mask: { maskText: (text) => text },
      now: () => 0,
      log: { error() {} },
    }),
  });
  const api = new AdminApi({
    dispatcher: gate,
    adminPrincipals: holders,
    oidc: { isConfigured: false } as never,
    auditing: { recordSignIn: async () => {} },
    log: { error() {} },
  });
  return { tokens, records, paths, now, holders, api, made: () => made };
}

const groupOf = ({ role, account }: Drawn) => `${role} ${account}`;

/** Headers of a principal's requests. */
function credential(of: Drawn, at: ReturnType<typeof site>, n: number): Record<string, string> {
  if (of.kind === "file") {
    const token = TOKEN + n;
    at.tokens.push({ name: of.name, role: of.role, token });
    return { authorization: `Bearer ${token}` };
  }
  if (of.kind === "token") {
    const { id, secret, digest } = mintKey(undefined, "ta");
    const { name, role, account } = of;
    at.records.set(digest, { id, name, digest, created: 0, admin: role, account });
    return { authorization: `Bearer ${secret}` };
  }
  const claims = { sub: of.subject, groups: [groupOf(of)], email: of.name, email_verified: true };
  const holder = principalOfClaims(claims, providerOf(of.issuer, [of]));
  return { cookie: `tollgate=${at.holders.sessions.start(holder, "127.0.0.1").token}` };
}

/** gateway.yaml's `admin.oidc`, with a group for each of these users. */
const providerOf = (issuer: string, people: readonly Drawn[]) =>
  ({
    issuer,
    groupsClaim: "groups",
    nameClaim: "email",
    roles: people.map((of) => ({ group: groupOf(of), role: of.role, account: of.account })),
  }) as unknown as OidcConfig;

async function post(
  api: AdminApi,
  headers: Record<string, string>,
  body: object,
): Promise<{ status: number; body: any }> {
  const req = Object.assign(Readable.from([Buffer.from(JSON.stringify(body))]), {
    method: "POST",
    url: "/admin/v1/keys.create",
    socket: { remoteAddress: "127.0.0.1" },
    complete: true,
    headers: {
      host: "localhost",
      origin: "http://localhost",
      "x-tollgate-console": "1",
      "content-type": "application/json",
      ...headers,
    },
  });
  let status = 0;
  let text = "";
  const res = {
    req,
    writeHead: (code: number) => void (status = code),
    end: (said: string) => void (text = said),
  };
  await api.serve(req as never, res as never);
  return { status, body: JSON.parse(text) };
}

/** Fields that distinguish principals, listed independently by this test. */
const same = (of: Drawn, n: number): string =>
  JSON.stringify(
    of.kind === "oidc"
      ? [of.kind, of.issuer, of.subject, of.role, of.account ?? null]
      : [of.kind, n],
  );

it("never share the result of an Idempotency-Key, and each gets its own result again", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(drawn, { minLength: 2, maxLength: 8 }), async (people) => {
      const at = site();
      const headers = people.map((each, n) => credential(each, at, n));
      const secrets = new Map<string, string>();
      for (const round of [1, 2])
        for (const [n, person] of people.entries()) {
          at.now.oidc = providerOf(person.issuer, people);
          const answer = await post(at.api, { ...headers[n]!, "idempotency-key": "k" }, {});
          expect(answer.status, `round ${round}`).toBe(200);
          const id = same(person, n);
          if (secrets.has(id)) expect(answer.body.secret).toBe(secrets.get(id));
          else expect([...secrets.values()]).not.toContain(answer.body.secret);
          secrets.set(id, answer.body.secret);
          const within = person.kind === "file" ? undefined : person.account;
          expect(answer.body.key.account).toBe(within ?? null);
        }
      expect(at.made()).toBe(secrets.size);
    }),
    { numRuns: trialCount(100) },
  );
});

it("have IDs that no other issuer, subject, role, or account can produce", () => {
  const principal = fc.record({
    name: fc.constant("anna"),
    credentialId: fc.stringMatching(/^(file|token|oidc):[ -~]{0,6}$/),
    role: fc.constantFrom<Role>("metrics", "viewer", "operator", "owner"),
    account: fc.option(fc.string({ maxLength: 4 }), { nil: undefined }),
  });
  fc.assert(
    fc.property(principal, principal, (a, b) => {
      const equal =
        a.credentialId === b.credentialId && a.role === b.role && a.account === b.account;
      expect(principalId(a) === principalId(b)).toBe(equal);
    }),
    { numRuns: trialCount(2_000) },
  );
});

it("are checked for account and role before a result is replayed", async () => {
  const at = site();
  const { id, secret, digest } = mintKey(undefined, "ta");
  const record = { id, name: "lead", digest, created: 0, admin: "owner" as Role, account: "acme" };
  const headers = { authorization: `Bearer ${secret}`, "idempotency-key": "k" };
  at.records.set(digest, record);
  expect((await post(at.api, headers, { account: "acme" })).status).toBe(200);
  for (const [changed, status, code] of [
    [{ ...record, account: "sales" }, 404, "no_such_account"],
    [{ ...record, admin: "viewer" as Role }, 403, "role_too_low"],
    [{ ...record, revoked: 1 }, 401, "invalid_admin_token"],
    [{ ...record, expires: 1 }, 401, "invalid_admin_token"],
  ] as const) {
    at.records.set(digest, changed);
    const { status: got, body } = await post(at.api, headers, { account: "acme" });
    expect([got, body.error.code, JSON.stringify(body).includes("secret-")]).toEqual([
      status,
      code,
      false,
    ]);
  }
});

it("are checked against current accounts when a result is replayed", async () => {
  const at = site();
  const { id, secret, digest } = mintKey(undefined, "ta");
  at.records.set(digest, { id, digest, created: 0, admin: "owner", account: "acme" });
  const headers = { authorization: `Bearer ${secret}`, "idempotency-key": "k" };
  at.paths.set("team", ["acme", "team"]);
  expect((await post(at.api, headers, { account: "team" })).status).toBe(200);
  at.paths.set("team", ["sales", "team"]);
  expect((await post(at.api, headers, { account: "team" })).status).toBe(404);
});

it("are counted separately although they share a display name", () => {
  const looks = new AccessCounter(() => 0);
  const giver = (by: string): CommandPrincipal => ({
    name: "admin:ann",
    role: "viewer",
    credentialId: by,
    channel: "token",
  });
  for (const by of ["token:1", "token:2", "token:1"]) looks.count("requests.list", giver(by));
  expect(looks.list().map(({ actor, count }) => [actor, count])).toEqual([
    ["admin:ann", 2],
    ["admin:ann", 1],
  ]);
});

const unverified = [
  {},
  { email_verified: false },
  { email_verified: "false" },
  { email_verified: 1 },
];

it.each(unverified)("ignore an email address that the provider has not verified: %j", (said) => {
  const roles = [{ group: "staff", role: "owner" as const, account: undefined }];
  const config = { issuer: ISSUERS[0]!, groupsClaim: "groups", nameClaim: "email", roles } as never;
  const claims = { sub: "s1", email: "boss@example.com", groups: ["staff"], ...said };
  expect(principalOfClaims(claims, config).name).toBe("admin:oidc:s1");
  // Nor as the source of a role.
  const byEmail = {
    ...(config as OidcConfig),
    groupsClaim: "email",
    roles: [{ group: "boss@example.com", role: "owner" as const, account: undefined }],
  };
  expect(getFault(caught(() => principalOfClaims(claims, byEmail)))?.code).toBe("no_role");
  const verified = { ...claims, email_verified: true };
  expect(principalOfClaims(verified, byEmail).name).toBe("admin:oidc:boss@example.com");
});

const caught = (work: () => unknown): unknown => {
  try {
    return work();
  } catch (error) {
    return error;
  }
};

it("from the shell's console link keep their scope, group, and expiry", async () => {
  const sessions = new Sessions(() => 1_000);
  const giver: CommandPrincipal = {
    name: "admin:oidc:ann",
    role: "owner",
    account: "acme",
    credentialId: "oidc:https://one.example s1",
    group: "staff",
    expiresAt: 5_000,
    channel: "session",
  };
  const { console: link } = createSessionCommands(sessions, () => "http://localhost");
  const { code } = (await link!({} as never, giver)) as { code: string };
  const holder = sessions.redeem(code)!;
  const { name: _, channel: __, ...whose } = giver;
  expect(holder).toMatchObject(whose);
  expect(sessions.start(holder, "").session.expiresAt).toBe(5_000);
});

it("whose token expired lose their sessions and unused links", async () => {
  const { digest, id } = mintKey(undefined, "ta");
  const sessions = new Sessions(() => 1_000);
  const holder: Principal = { name: "admin:ann", role: "owner", credentialId: `token:${id}` };
  const { session } = sessions.start(holder, "");
  const { code } = sessions.invite(holder);
  const other = sessions.invite({ ...holder, credentialId: "shell" });
  const commands = createAdminCommands(
    {
      list: async () => [{ id, name: "ann", digest, created: 0, admin: "owner" as const }],
      write: async () => {},
      fileConfig: () => undefined,
      readTree: async () => ({}) as never,
      sessions: () => sessions,
    },
    () => 1_000,
  );
  await commands["admins.revoke"]!({ id } as never);
  expect(sessions.list().map((each) => each.id)).not.toContain(session.id);
  expect(sessions.redeem(code)).toBeUndefined();
  expect(sessions.redeem(other.code)).toBeDefined();
});

it("of a replaced file token are new: old sessions end, and results are not replayed", async () => {
  const at = site();
  at.tokens.push({ name: "ann", role: "owner", token: `${TOKEN}1` });
  const first = { authorization: `Bearer ${TOKEN}1`, "idempotency-key": "k" };
  const { secret } = (await post(at.api, first, {})).body;
  const holder = await at.holders.login({ socket: {}, headers: {} } as never, {
    token: `${TOKEN}1`,
  });
  const cookie = `tollgate=${at.holders.sessions.start(holder, "").token}`;
  expect((await post(at.api, { cookie }, {})).status).toBe(200);
  at.tokens[0] = { name: "ann", role: "owner", token: `${TOKEN}2` };
  expect((await post(at.api, { cookie }, {})).body.error.code).toBe("session_over");
  const second = { ...first, authorization: `Bearer ${TOKEN}2` };
  expect((await post(at.api, second, {})).body.secret).not.toBe(secret);
});

it.each([
  ["a file token's", "anna"],
  ["a file token's in other letters", "ANNA"],
  ["a file token's in wide letters", "ａｎｎａ"],
  ["a token's that has ended", "ended"],
  ["a token's that has expired", "Expired"],
  ["a token's that is valid", "valid"],
  ["a token's id", "tokenid001"],
  ["a person's", "oidc:ann@example.com"],
])("are not created with a name that is %s", async (_, name) => {
  const written: unknown[] = [];
  const record = (id: string, called: string, more: object = {}): KeyRecord => ({
    id,
    name: called,
    digest: id,
    created: 0,
    admin: "viewer",
    ...more,
  });
  const commands = createAdminCommands(
    {
      list: async () => [
        record("tokenid001", "valid"),
        record("2", "ended", { revoked: 1 }),
        record("3", "expired", { expires: 1 }),
      ],
      write: async (each) => written.push(each),
      fileConfig: () => ({
        tokens: [{ name: "anna", role: "owner", token: "t" }],
        oidc: undefined,
      }),
      readTree: async () => ({}) as never,
    },
    () => 1_000,
  );
  const create = (called: string) =>
    commands["admins.create"]!({ name: called, role: "viewer" } as never);
  const fault = getFault(await create(name).catch((error: unknown) => error));
  expect([fault?.code, written.length]).toEqual(["admin_exists", 0]);
  await create("another");
  expect(written).toHaveLength(1);
});
