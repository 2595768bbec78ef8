// The admin API: commands over HTTP for clients with a token or a console session, and rejections
// of others.
import { request } from "node:http";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runSocketCommand } from "../../kit/control-token.ts";
import { getFault } from "../../../src/model/error.ts";
import { startInProcess, type InProcessGateway } from "../../kit/in-process.ts";
import { until } from "../../kit/wait.ts";

const OWNER = "owner-0123456789abcdef0123456789";
const yaml = `admin:
  port: 0
  tokens:
    file-owner: { role: owner, token: "\${env:T_OWNER}" }
accounts:
  acme: {}
  research: { parent: acme }
  sales: { parent: acme }
frontends: [chat-completions, models]
middleware: [auth]
providers: { demo: { use: demo } }
`;

let gateway: InProcessGateway;
let admin: string;
beforeAll(async () => {
  gateway = await startInProcess({ yaml, env: { T_OWNER: OWNER } });
  admin = ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

interface Asked {
  readonly method?: string;
  readonly token?: string;
  readonly cookie?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: any;
}

/** Like any program: without headers that it does not set. */
const ask = (path: string, { method = "GET", token, cookie, headers, body }: Asked = {}) =>
  new Promise<Answer>((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const own = {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(cookie !== undefined && { cookie }),
      ...(text !== undefined && { "content-type": "application/json" }),
      ...headers,
    };
    const req = request(`${admin}${path}`, { method, headers: own, agent: false }, (res) => {
      const chunks: Buffer[] = [];
      res.on("data", (chunk: Buffer) => chunks.push(chunk));
      res.on("end", () => {
        const said = Buffer.concat(chunks).toString();
        resolve({ status: res.statusCode!, headers: res.headers, body: said && JSON.parse(said) });
      });
    });
    req.on("error", reject);
    req.end(text);
  });

/** Like a page of the console. */
const page = () => ({ origin: admin, "x-tollgate-console": "1" });
const post = (command: string, body: unknown, more: Asked = { token: OWNER }) =>
  ask(`/admin/v1/${command}`, { method: "POST", body, ...more });
const code = ({ status, body }: Answer) => [status, body?.error?.code];

async function tokenOf(role: string, account?: string): Promise<string> {
  const name = `${role}-${account ?? "all"}-${Math.random().toString(36).slice(2)}`;
  const { secret } = (await gateway.ask("admins.create", { name, role, account })) as never as {
    secret: string;
  };
  return secret;
}

async function signIn(said?: object): Promise<string> {
  const { code: secret } = (await gateway.ask("console")) as never as { code: string };
  const { status, headers } = await post("session", said ?? { code: secret }, { headers: page() });
  expect(status).toBe(200);
  return String(headers["set-cookie"]).split(";")[0]!;
}

describe("commands", () => {
  it("are listed by role, each at its stated URL", async () => {
    const viewer = await tokenOf("viewer");
    const all = (await ask("/admin/v1", { token: OWNER })).body.commands as any[];
    const some = (await ask("/admin/v1", { token: viewer })).body.commands as any[];
    expect(some.every(({ role }) => role === "viewer" || role === "metrics")).toBe(true);
    expect(some.length).toBeLessThan(all.length);
    expect(all.map(({ name }) => name)).toContain("store/head");
    for (const { path, methods, name } of all) {
      const answer = await ask(path, { method: "PUT", token: OWNER });
      expect([name, answer.status, answer.headers["allow"]]).toEqual([
        name,
        405,
        methods.join(", "),
      ]);
    }
  });

  it("that change nothing accept query parameters, typed by the schema", async () => {
    const sums = await ask("/admin/v1/ledger.totals?by=key,day&from=0&tz=Europe/Berlin", {
      token: OWNER,
    });
    expect([sums.status, sums.body.rows]).toEqual([200, []]);
    expect(sums.headers["etag"]).toMatch(/^"[0-9a-f]{32}"$/);
    const wrong = await ask("/admin/v1/ledger.totals?from=yesterday", { token: OWNER });
    expect(code(wrong)).toEqual([400, "bad_input"]);
    expect(code(await ask("/admin/v1/keys.create", { token: OWNER }))).toEqual([
      405,
      "method_not_allowed",
    ]);
    expect(code(await ask("/admin/v1/nothing", { token: OWNER }))).toEqual([
      404,
      "unknown_command",
    ]);
    expect(code(await ask("/admin/v1/status%", { token: OWNER }))).toEqual([400, "bad_path"]);
  });

  it("are described by a valid OpenAPI document, and each schema by valid JSON Schema", async () => {
    const { status, body } = await ask("/admin/openapi.json", { token: OWNER });
    expect(status).toBe(200);
    const judge = (document: any) => new Validator().validate(structuredClone(document));
    expect(await judge(body)).toEqual({ valid: true });
    const operations = Object.values(body.paths).flatMap((path: any) =>
      Object.values(path),
    ) as any[];
    const ids = operations.map(({ operationId }) => operationId);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids).toEqual(
      expect.arrayContaining(["ledger.totals", "store/head", "keys.create.post"]),
    );
    const ajv = new Ajv2020({ strict: false });
    const schemas = operations.flatMap(({ parameters = [], requestBody, responses }) => [
      ...parameters.map(({ schema }: any) => schema),
      ...[requestBody, responses["200"]].map((each) => each?.content["application/json"].schema),
    ]);
    for (const schema of schemas) if (schema) ajv.compile(schema);
    expect(schemas.length).toBeGreaterThan(100);
    // All use one check, so each of these is rejected.
    for (const spoil of [
      (of: any) => delete of.info.version,
      (of: any) => (of.paths["/admin/v1/status"].get.parameters = [{ name: "x", in: "nowhere" }]),
      (of: any) => delete of.paths["/admin/v1/status"].get.responses["200"].description,
      (of: any) => (of.components.securitySchemes.token.type = "word"),
    ]) {
      const spoilt = structuredClone(body);
      spoil(spoilt);
      expect((await judge(spoilt)).valid).toBe(false);
    }
  });

  it("accept only JSON", async () => {
    const at = "/admin/v1/keys.list";
    const plain = await ask(at, {
      method: "POST",
      token: OWNER,
      headers: { "content-type": "text/plain" },
    });
    expect(code(plain)).toEqual([415, "media_type"]);
    expect(code(await ask(at, { method: "POST", token: OWNER, body: [1] }))).toEqual([
      400,
      "bad_input",
    ]);
    const large = await ask(at, { method: "POST", token: OWNER, body: { x: "x".repeat(1 << 20) } });
    expect(code(large)).toEqual([413, "body_too_large"]);
  });

  it("reject a change that is based on an outdated version", async () => {
    const made = (await post("keys.create", { name: "etag" })).body.key;
    const { headers } = await ask(`/admin/v1/keys.show?id=${made.id}`, { token: OWNER });
    const ifMatch = { "if-match": String(headers["etag"]) };
    const move = (account: string) =>
      post("keys.move", { id: made.id, account }, { token: OWNER, headers: ifMatch });
    const [a, b] = await Promise.all([move("research"), move("sales")]);
    expect([a, b].map(code).toSorted()).toEqual([
      [200, undefined],
      [412, "version_conflict"],
    ]);
  });

  it("create an object once per Idempotency-Key", async () => {
    const once = { token: OWNER, headers: { "idempotency-key": "one" } };
    const [a, b] = await Promise.all([1, 2].map(() => post("keys.create", { name: "once" }, once)));
    expect(a!.body.secret).toBe(b!.body.secret);
    const other = await post("keys.create", { name: "twice" }, once);
    expect(code(other)).toEqual([422, "idempotency_mismatch"]);
    const { keys } = (await ask("/admin/v1/keys.list", { token: OWNER })).body;
    expect(keys.filter(({ name }: any) => name === "once")).toHaveLength(1);
  });

  it("describe internal errors, and forbid browsers to cache them", async () => {
    const { headers, body, status } = await ask("/admin/v1/models.refresh", {
      method: "POST",
      token: OWNER,
      body: { provider: "nowhere" },
    });
    expect([status, body.error.message]).toEqual([404, expect.stringContaining("nowhere")]);
    expect(headers).toMatchObject({
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      "x-request-id": body.error.request_id,
    });
  });
});

describe("tokens", () => {
  it("from the store are accepted, and rejected immediately after they are revoked", async () => {
    const token = await tokenOf("viewer");
    expect(token).toMatch(/^ta_/);
    expect((await ask("/admin/v1/status", { token })).status).toBe(200);
    const { admins } = (await gateway.ask("admins.list")) as never as { admins: any[] };
    const { id } = admins.at(-1);
    expect(JSON.stringify(admins)).not.toContain(token);
    await gateway.ask("admins.revoke", { id });
    expect(code(await ask("/admin/v1/status", { token }))).toEqual([401, "invalid_admin_token"]);
  });

  it("cannot call models, and keys cannot use the admin API", async () => {
    const token = await tokenOf("owner");
    const chat = await fetch(`${gateway.url}/v1/models`, {
      headers: { authorization: `Bearer ${token}` },
    });
    expect(chat.status).toBe(401);
    expect(code(await ask("/admin/v1/status", { token: gateway.key }))).toEqual([
      401,
      "invalid_admin_token",
    ]);
    const { keys } = (await ask("/admin/v1/keys.list", { token: OWNER })).body;
    expect(keys.filter(({ admin }: any) => admin !== undefined)).toEqual([]);
  });

  it("are limited to an existing account", async () => {
    const made = (account: string) =>
      post("admins.create", { name: account, role: "viewer", account });
    const answer = await made("reserch");
    expect(code(answer)).toEqual([400, "unknown_account"]);
    expect(answer.body.error.message).toContain('Did you mean "research"?');
    await gateway.ask("accounts.create", { id: "gone-team" });
    await gateway.ask("accounts.close", { id: "gone-team" });
    expect(code(await made("gone-team"))).toEqual([409, "account_closed"]);
  });

  it("are audited when they read single requests: the number of reads is recorded, but not the requests", async () => {
    const token = await tokenOf("viewer");
    for (const id of ["look-1-none", "look-2-none"])
      expect((await post("requests.show", { id }, { token })).status).toBe(404);
    await ask("/admin/v1/requests.list", { token });
    const log = (await gateway.ask("audit.list", { limit: 1_000 })) as never as {
      accessCounts: any[];
    };
    const mine = log.accessCounts.filter(({ actor }) => actor.startsWith("admin:viewer-"));
    expect(mine).toMatchObject([{ command: "requests.show", count: 2 }]);
    expect(JSON.stringify(log)).not.toContain("look-1-none");
  });

  it("can be sent to the control socket, and then their role applies", async () => {
    const token = await tokenOf("viewer");

    expect((await runSocketCommand(gateway.stateDir, "status", token)).status).toBe(200);
    const refused = await runSocketCommand(gateway.stateDir, "keys.create", token);
    expect(refused.body).toMatchObject({ error: { kind: "forbidden", code: "role_too_low" } });
  });
});

describe("sessions", () => {
  it("are opened once by a console link from the shell, with the owner's role", async () => {
    const { code: secret, url } = (await gateway.ask("console")) as never as {
      code: string;
      url: string;
    };
    expect(url).toBe(`${admin}/#${secret}`);
    const began = await post("session", { code: secret }, { headers: page() });
    expect([began.status, began.body]).toMatchObject([
      200,
      { name: "shell", role: "owner", account: null },
    ]);
    expect(began.headers["set-cookie"]).toEqual([
      expect.stringMatching(
        /^tollgate=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
      ),
    ]);
    expect(code(await post("session", { code: secret }, { headers: page() }))).toEqual([
      401,
      "invalid_code",
    ]);
  });

  it("are opened with a token and its role, and end with the token", async () => {
    const token = await tokenOf("viewer");
    const cookie = await signIn({ token });
    expect((await ask("/admin/v1/session", { cookie })).body).toMatchObject({
      role: "viewer",
      channel: "session",
    });
    expect((await ask("/admin/v1/status", { cookie })).status).toBe(200);
    const write = await post("keys.create", {}, { cookie, headers: page() });
    expect(code(write)).toEqual([403, "role_too_low"]);
    const { admins } = (await gateway.ask("admins.list")) as never as { admins: any[] };
    await gateway.ask("admins.revoke", { id: admins.at(-1).id });
    expect(code(await ask("/admin/v1/status", { cookie }))).toEqual([401, "session_over"]);
  });

  it("reject changes from other sites and without the required header", async () => {
    const cookie = await signIn();
    const create = (headers: Record<string, string>) =>
      post("keys.create", {}, { cookie, headers });
    expect((await create(page())).status).toBe(200);
    expect(code(await create({ origin: admin }))).toEqual([403, "page_header"]);
    expect(code(await create({ "x-tollgate-console": "1" }))).toEqual([403, "origin_not_allowed"]);
    expect(code(await create({ ...page(), origin: "null" }))).toEqual([403, "origin_not_allowed"]);
    expect(code(await create({ ...page(), origin: admin.replace("http", "https") }))).toEqual([
      403,
      "origin_not_allowed",
    ]);
    expect(code(await create({ ...page(), "sec-fetch-site": "cross-site" }))).toEqual([
      403,
      "origin_not_allowed",
    ]);
    const form = await ask("/admin/v1/keys.create", {
      method: "POST",
      cookie,
      headers: { ...page(), "content-type": "text/plain" },
    });
    expect(code(form)).toEqual([415, "media_type"]);
  });

  it("are replaced at each sign-in, whatever cookie was sent, and end at sign-out", async () => {
    const planted = `tollgate=${"A".repeat(43)}`;
    const { code: secret } = (await gateway.ask("console")) as never as { code: string };
    const began = await post("session", { code: secret }, { cookie: planted, headers: page() });
    const cookie = String(began.headers["set-cookie"]).split(";")[0]!;
    expect(cookie).not.toBe(planted);
    expect((await ask("/admin/v1/session", { cookie: planted })).status).toBe(401);
    const again = (await gateway.ask("console")) as never as { code: string };
    await post("session", { code: again.code }, { cookie, headers: page() });
    expect((await ask("/admin/v1/session", { cookie })).status).toBe(401);
    const last = await signIn();
    const out = await ask("/admin/v1/session", { method: "DELETE", cookie: last, headers: page() });
    expect([out.body, out.headers["set-cookie"]]).toEqual([
      { ended: true },
      [expect.stringContaining("Max-Age=0")],
    ]);
    expect((await ask("/admin/v1/session", { cookie: last })).status).toBe(401);
    expect((await ask("/admin/v1/session", { cookie: `${last}; ${planted}` })).status).toBe(401);
  });

  it("leave an audit row at sign-in and at sign-out, and none when they are read", async () => {
    const rows = async () =>
      ((await gateway.ask("audit.list", { limit: 4 })) as never as { items: any[] }).items;
    const token = await tokenOf("viewer");
    const cookie = await signIn({ token });
    await ask("/admin/v1/session", { cookie });
    const viewer = {
      actor: expect.stringMatching(/^admin:viewer-/),
      role: "viewer",
      channel: "session",
    };
    expect((await rows())[0]).toMatchObject({
      ...viewer,
      command: "sign-in",
      address: "127.0.0.1",
      outcome: "done",
    });
    await ask("/admin/v1/session", { method: "DELETE", cookie, headers: page() });
    await ask("/admin/v1/session", { method: "DELETE", cookie, headers: page() });
    expect((await rows())[0]).toMatchObject({ ...viewer, command: "sign-out", outcome: "done" });
    expect((await rows())[1]).toMatchObject({ command: "sign-in" });
    expect(JSON.stringify(await rows())).not.toContain(cookie.slice("tollgate=".length));
  });

  it("are listed without their secrets, and can be ended", async () => {
    const cookie = await signIn();
    const { sessions } = (await gateway.ask("sessions.list")) as never as { sessions: any[] };
    const mine = sessions.at(-1);
    expect(mine).toMatchObject({ name: "shell", role: "owner", address: "127.0.0.1" });
    expect(JSON.stringify(sessions)).not.toContain(cookie.slice("tollgate=".length));
    expect(await gateway.ask("sessions.revoke", { id: mine.id })).toEqual({ revoked: 1 });
    expect((await ask("/admin/v1/status", { cookie })).status).toBe(401);
  });
});

describe("an admin of one account", () => {
  const keyIn = async (account?: string, name?: string) =>
    ((await gateway.ask("keys.create", { account, name })) as never as { key: { id: string } }).key
      .id;

  it("lists, creates, and revokes keys of this account only", async () => {
    const token = await tokenOf("operator", "research");
    const [own, theirs, free] = [
      await keyIn("research", "ours"),
      await keyIn("sales", "theirs"),
      await keyIn(),
    ];
    const { keys } = (await ask("/admin/v1/keys.list", { token })).body;
    expect(keys.map(({ account }: any) => account)).toEqual(keys.map(() => "research"));
    expect(keys.map(({ id }: any) => id)).toContain(own);
    const made = await post("keys.create", { name: "theirs" }, { token });
    expect([made.body.key.account, made.body.warnings]).toEqual(["research", []]);
    const elsewhere = await post("keys.create", { account: "sales" }, { token });
    const nowhere = await post("keys.create", { account: "not-there" }, { token });
    expect(code(elsewhere)).toEqual([404, "no_such_account"]);
    expect(code(nowhere)).toEqual(code(elsewhere));
    for (const id of [theirs, free, "theirs-not", "no-such"])
      for (const command of ["keys.show", "keys.revoke", "keys.rotate", "keys.move"]) {
        const answer = await post(command, { id }, { token });
        expect([command, ...code(answer)]).toEqual([command, 404, "no_such_key"]);
        expect(answer.body.error.message).toBe(`Key "${id}" not found.`);
      }
    expect((await post("keys.revoke", { id: own }, { token })).status).toBe(200);
  });

  it("receives sums of this account only, and cannot run commands for the whole gateway", async () => {
    const token = await tokenOf("owner", "research");
    const { commands } = (await ask("/admin/v1", { token })).body;
    const names = commands.map(({ name }: any) => name);
    expect(names).toEqual(expect.arrayContaining(["ledger.totals", "keys.create"]));
    for (const refused of [
      "config.show",
      "requests.stats",
      "ledger.entries",
      "admins.create",
      "console",
      "store/head",
    ]) {
      expect(names).not.toContain(refused);
      expect(code(await post(refused, { name: "x", role: "owner" }, { token }))).not.toContain(200);
    }
    expect(code(await ask("/admin/v1/fleet", { token }))).toEqual([403, "account_only"]);
    const status = await ask("/admin/v1/status", { token });
    expect(status.body).toMatchObject({ state: "ready" });
    expect(status.body).not.toHaveProperty("stateDir");
    const sums = await ask("/admin/v1/ledger.totals?account=sales", { token });
    expect(code(sums)).toEqual([404, "no_such_account"]);
    const theirs = await keyIn("sales", "hidden");
    for (const key of [theirs, "hidden", "never-was"])
      expect(code(await ask(`/admin/v1/ledger.totals?key=${key}`, { token }))).toEqual([
        404,
        "no_such_key",
      ]);
  });
});

describe("completed requests", () => {
  const call = async (key: string, model = "demo/echo") => {
    const answer = await fetch(`${gateway.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({ model, messages: [{ role: "user", content: "hidden-word" }] }),
    });
    await answer.arrayBuffer();
    return answer.headers.get("x-request-id")!;
  };

  it("are found in the whole ledger, listed and shown; an admin of one account finds only its own", async () => {
    const { secret } = (await gateway.ask("keys.create", { account: "research" })) as never as {
      secret: string;
    };
    const [own, other] = [await call(secret), await call(gateway.key)];
    const token = await tokenOf("viewer", "research");
    const found = (command: string, input: object = {}, as = token) =>
      post(command, { ...input }, { token: as });
    const ids = ({ body }: { body: any }): string[] => body.items.map(({ id }: any) => id);
    await until(async () => ids(await found("requests.search", {}, OWNER)).includes(other));
    const all = await found("requests.search", { status: "ok" }, OWNER);
    expect(ids(all)).toEqual(expect.arrayContaining([own, other]));
    expect(all.body.items.find(({ id }: any) => id === own)).toMatchObject({
      status: "ok",
      account: "acme/research",
      model: "demo/echo",
      frontend: "chat-completions",
      calls: [{ n: 1, provider: "demo", outcome: "ok" }],
    });
    expect(JSON.stringify(all.body)).not.toContain("hidden-word");
    expect(ids(await found("requests.search", { status: "failed", from: 0 }, OWNER))).not.toContain(
      own,
    );
    for (const command of ["requests.search", "requests.list"]) {
      await until(async () => ids(await found(command)).includes(own));
      expect(ids(await found(command))).not.toContain(other);
      expect(code(await found(command, { account: "sales" }))).toEqual([404, "no_such_account"]);
    }
    expect((await found("requests.show", { id: own })).body.requests).toMatchObject([{ id: own }]);
    expect(code(await found("requests.show", { id: other }))).toEqual([404, "no_such_request"]);
    const said = async (id: string) =>
      ((await found("requests.show", { id })).body.error.message as string).replace(id, "it");
    expect(await said(other)).toBe(await said("never-was"));
  });

  it("are found by status", async () => {
    await call(gateway.key, "demo/nothing-like-it");
    const status = async (status: string): Promise<any[]> =>
      (await ask(`/admin/v1/requests.list?status=${status}`, { token: OWNER })).body.items;
    await until(async () => (await status("refused")).length > 0);
    expect((await status("refused")).every(({ status }) => status >= 400 && status < 500)).toBe(
      true,
    );
    expect((await status("ok")).every(({ status }) => status === 200)).toBe(true);
  });
});

it("attention items cover the whole gateway, or one account", async () => {
  const token = await tokenOf("viewer", "research");
  expect(await ask("/admin/v1/attention", { token })).toMatchObject({ status: 200 });
  expect(code(await ask("/admin/v1/attention?account=sales", { token }))).toEqual([
    404,
    "no_such_account",
  ]);
  expect((await ask("/admin/v1/attention", { token: OWNER })).body).toMatchObject({ omitted: 0 });
});

describe("open requests", () => {
  const live = async (more: Asked = { token: OWNER }) =>
    (await ask("/admin/v1/requests.live", more)).body as { total: number; items: any[] };

  it("are listed with their current stage; an admin of one account sees only its own", async () => {
    const { secret, key } = (await gateway.ask("keys.create", {
      account: "research",
    })) as never as { secret: string; key: { id: string } };
    const asking = new AbortController();
    const answers = [secret, gateway.key].map((key) =>
      fetch(`${gateway.url}/v1/chat/completions`, {
        method: "POST",
        headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
        body: JSON.stringify({
          model: "demo/slow",
          messages: [{ role: "user", content: "hidden-word" }],
        }),
        signal: asking.signal,
      }).catch(() => undefined),
    );
    await until(
      async () => (await live()).items.filter(({ attempt }) => attempt === 1).length === 2,
    );
    const all = await live();
    expect(all.items).toMatchObject(
      [0, 1].map(() => ({ frontend: "chat-completions", model: "demo/slow", provider: "demo" })),
    );
    expect(all.items.map(({ phase }) => phase)).toEqual(["calling", "calling"]);
    expect(JSON.stringify(all)).not.toContain("hidden-word");
    const token = await tokenOf("viewer", "research");
    expect(await live({ token })).toMatchObject({
      total: 1,
      items: [{ account: "acme/research", key: key.id }],
    });
    const limited = await ask("/admin/v1/requests.live?limit=1", { token: OWNER });
    expect(limited.body).toMatchObject({ total: 2, items: [{}] });
    asking.abort();
    await Promise.all(answers);
    await until(async () => (await live()).total === 0);
  });

  it("of one account are counted in total and by account, and in no other way", async () => {
    const token = await tokenOf("viewer", "research");
    const asked = (by: string) => ask(`/admin/v1/requests.series?by=${by}&step=hour`, { token });
    await until(async () => (await asked("all")).body.totals?.length === 1);
    expect((await asked("account")).body.totals).toMatchObject([{ name: "acme/research" }]);
    for (const by of ["key", "model", "frontend"])
      expect(code(await asked(by))).toEqual([400, "bad_input"]);
  });
});

it("after ten failed attempts per minute from one address, valid tokens are rejected too", async () => {
  await using other = await startInProcess({ yaml, env: { T_OWNER: OWNER } });
  const at = ((await other.ask("status")) as { adminUrl: string }).adminUrl;
  const tried = async (token: string) => {
    const res = await fetch(`${at}/admin/v1/status`, {
      headers: { authorization: `Bearer ${token}` },
    });
    return [res.status, res.headers.get("retry-after")];
  };
  for (let i = 0; i < 10; i++) expect(await tried(`wrong-${i}`)).toEqual([401, null]);
  expect(await tried(OWNER)).toEqual([429, expect.stringMatching(/^\d+$/)]);
  expect((await other.ask("status")) as object).toBeTruthy();
});

it("does not start on a public address without an admin", async () => {
  const open = "admin: { behind_proxy: true, port: 0 }\nproviders: { demo: { use: demo } }\n";
  await expect(startInProcess({ yaml: open })).rejects.toSatisfy(
    (error) => getFault(error)?.code === "no_admin",
  );
});
