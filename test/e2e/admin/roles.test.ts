// Each role, at each command, through each interface, and the audit rows of each command that
// changes something.
import { createServer } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Json, JsonObject } from "tollgate/plugin";
import { ROLES } from "../../../src/config/sections/admin-config.ts";
import { COMMAND_SPECS, type CommandName } from "../../../src/admin/schema/command-specs.ts";
import { runSocketCommand } from "../../kit/control-token.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";

const yaml = `admin: { port: 0 }
frontends: [chat-completions]
middleware: [auth]
providers: { demo: { use: demo } }
`;

let gateway: Daemon;
let admin: string;
const secrets: string[] = [];
/** By role: a token, and the cookie of a session opened with it. */
const tokens = new Map<string, { token: string; cookie: string }>();

const post = async (path: string, body: JsonObject, headers: Record<string, string>) => {
  const res = await fetch(`${admin}/admin/v1/${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify(body),
  });
  return { status: res.status, headers: res.headers, body: (await res.json()) as any };
};
const page = () => ({ origin: admin, "x-tollgate-console": "1" });

beforeAll(async () => {
  gateway = await startDaemon({ yaml });
  secrets.push(gateway.key);
  admin = ((await gateway.ask("status")) as { adminUrl: string }).adminUrl;
  for (const role of ROLES) {
    const made = (await gateway.ask("admins.create", { name: `a-${role}`, role })) as any;
    const { headers } = await post("session", { token: made.secret }, page());
    const cookie = headers.get("set-cookie")!.split(";")[0]!;
    tokens.set(role, { token: made.secret, cookie });
    secrets.push(made.secret, cookie.split("=")[1]!);
  }
});
afterAll(() => gateway?.[Symbol.asyncDispose]());

interface Said {
  readonly code: string | undefined;
  readonly body: any;
}
type Ask = (role: string, command: string, input: JsonObject) => Promise<Said>;

const DOORS: Readonly<Record<string, Ask>> = {
  socket: async (role, command, input) => {
    const { body } = await runSocketCommand(
      gateway.stateDir,
      command,
      tokens.get(role)!.token,
      input,
    );
    return { code: body.error?.code, body: body.value };
  },
  token: async (role, command, input) => {
    const headers = { authorization: `Bearer ${tokens.get(role)!.token}` };
    const { body, status } = await post(command, input, headers);
    if (body.error?.code === "role_too_low") expect(status).toBe(403);
    return { code: body?.error?.code, body };
  },
  session: async (role, command, input) => {
    const { body, status } = await post(command, input, {
      ...page(),
      cookie: tokens.get(role)!.cookie,
    });
    if (body.error?.code === "role_too_low") expect(status).toBe(403);
    return { code: body?.error?.code, body };
  },
};

const names = [...Object.keys(COMMAND_SPECS), "store/head"] as (CommandName | "store/head")[];
const least = (name: CommandName | "store/head") =>
  name === "store/head" ? "owner" : COMMAND_SPECS[name].role;

describe.each(Object.entries(DOORS))("through the interface %s", (_, ask) => {
  it.each(ROLES)("%s has exactly the rights of its role", async (role) => {
    const may: string[] = [];
    for (const name of names) {
      // Invalid input, so that nothing is done.
      const { code } = await ask(role, name, { "no-such-member": 1 });
      expect(["role_too_low", "bad_input"]).toContain(code);
      if (code === "bad_input") may.push(name);
    }
    const should = names.filter((name) => ROLES.indexOf(least(name)) <= ROLES.indexOf(role));
    expect(may).toEqual(should);
  });
});

type Writer = {
  [N in CommandName]: (typeof COMMAND_SPECS)[N]["writes"] extends true ? N : never;
}[CommandName];
let made = 0;
/** Valid input for each. None of the commands has to succeed. */
const GIVEN: Readonly<Record<Writer, () => JsonObject>> = {
  reload: () => ({}),
  "models.refresh": () => ({}),
  "models.accept": () => ({ version: 1 }),
  "providers.test": () => ({ provider: "nowhere" }),
  "providers.reset": () => ({ provider: "nowhere" }),
  "sockets.close": () => ({ id: "nowhere" }),
  "jobs.cancel": () => ({ id: "nowhere" }),
  "scopes.reset": () => ({ name: "nowhere", value: "4711-private" }),
  "scopes.raise": () => ({ name: "nowhere", value: "4711-private", by: "usd=1/day" }),
  "scopes.erase": () => ({ name: "nowhere", value: "4711-private" }),
  "ledger.adjust": () => ({ attempt: "none.1", usd: "1", reason: "secret reason" }),
  "ledger.archive": () => ({ file: join(gateway.dir, `${made++}.gz`) }),
  "ledger.prune": () => ({ before: 0, dryRun: true }),
  erase: () => ({ label: "user=4711-private" }),
  backup: () => ({ file: join(gateway.dir, `${made++}.tar`) }),
  "keys.create": () => ({ name: "Anna Private", labels: { user: "4711-private" } }),
  "keys.update": () => ({ id: "kept", models: ["demo/*"] }),
  "keys.import": () => ({ keys: [{ digest: `${made++}`.padStart(64, "f") }] }),
  "keys.revoke": () => ({ id: "nowhere" }),
  "keys.move": () => ({ id: "kept" }),
  "keys.rotate": () => ({ id: "kept" }),
  "accounts.create": () => ({ id: `team-${made++}` }),
  "accounts.update": () => ({ id: "nowhere" }),
  "accounts.close": () => ({ id: "nowhere" }),
  "admins.create": () => ({ name: `new-${made++}`, role: "viewer" }),
  "admins.revoke": () => ({ id: "nowhere" }),
  "sessions.revoke": () => ({ id: "nowhere" }),
  console: () => ({}),
};

const audited = async (): Promise<any[]> =>
  ((await gateway.ask("audit.list", { limit: 1_000 })) as { items: any[] }).items;

describe("every command that changes something", () => {
  beforeAll(() => gateway.ask("keys.create", { name: "kept" }));

  it.each(Object.keys(GIVEN) as Writer[])(
    "%s writes one audit row, through each interface",
    async (name) => {
      for (const [door, ask] of Object.entries(DOORS)) {
        const before = (await audited()).length;
        const { code, body } = await ask("owner", name, GIVEN[name]());
        if (body?.secret) secrets.push(body.secret);
        const rows = await audited();
        expect(rows.length - before).toBe(1);
        expect(rows[0]).toMatchObject({
          actor: "admin:a-owner",
          role: "owner",
          channel: door,
          command: name,
          outcome: code === undefined ? "done" : "failed",
        });
        expect(rows[0].code).toBe(code);
        expect(rows[0].address).toBe(door === "socket" ? undefined : "127.0.0.1");
      }
    },
  );

  it("records the previous state, and no secrets or personal data", async () => {
    const rows = await audited();
    const move = rows.find(({ command }) => command === "keys.update");
    expect(move).toMatchObject({ target: "kept", after: { models: ["demo/*"] } });
    expect(move.before.keys[0]).toMatchObject({ state: "valid", name: "(not kept)" });
    const text = JSON.stringify(rows);
    for (const secret of [...secrets, "Anna Private", "4711-private", "secret reason"])
      expect(text).not.toContain(secret);
    expect(text).not.toMatch(/"digest"|[0-9a-f]{64}/);
  });

  it("reads and rejected commands write none", async () => {
    const before = (await audited()).length;
    await DOORS["token"]!("viewer", "keys.create", {});
    await DOORS["token"]!("owner", "keys.create", { nonsense: 1 });
    await DOORS["token"]!("viewer", "keys.list", {});
    expect(await audited()).toHaveLength(before);
    expect((await gateway.ask("ledger.verify")) as Json).toMatchObject({ problems: [] });
  });
});

it("a gateway that is killed between a row and its effect reports this afterwards", async () => {
  const silent = createServer(() => {}).listen(0, "127.0.0.1");
  await new Promise((resolve) => silent.once("listening", resolve));
  const { port } = silent.address() as { port: number };
  const slow = `providers:\n  slow: { use: openai-compatible, with: { base_url: "http://127.0.0.1:${port}/v1" } }\n`;
  const first = await startDaemon({ yaml: slow });
  const asked = first.ask("models.refresh").catch(() => {});
  await until(
    async () => ((await first.ask("audit.list")) as { items: any[] }).items.length > 0,
    () => "the row is written",
  );
  await first.stop("SIGKILL");
  await asked;
  await using again = await startDaemon({ yaml: slow, dir: first.dir });
  const { items } = (await again.ask("audit.list")) as { items: any[] };
  expect(items).toMatchObject([{ command: "models.refresh", actor: "shell", outcome: "unknown" }]);
  expect(await again.ask("ledger.verify")).toMatchObject({ problems: [] });
  silent.close();
});
