// Every command of the gateway's table, through every interface: the control socket, the command
// line with a running gateway, and the command line on its files after it stopped.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { jsonMembersOf } from "../../.build/reference/cli.ts";
import { getValidator, type Schema } from "../../src/config/schema-dialect.ts";
import { COMMANDS as VERBS, main } from "../../src/cli/main.ts";
import { startDryRun } from "../../src/server/dry-run.ts";
import { COMMAND_SPECS, type CommandName } from "../../src/admin/schema/command-specs.ts";
import type { LiveSockets } from "../../src/admin/commands/socket-commands.ts";
import { getFault } from "../../src/model/error.ts";
import type { Json, JsonObject } from "../../src/model/values.ts";
import { loadGatewayConfig, quietLog } from "../../src/cli/support/load-config.ts";
import { type Daemon, startDaemon } from "../kit/process/daemon.ts";
import { openSocket } from "../kit/sockets/socket-client.ts";

const fakeProvider = fileURLToPath(new URL("../kit/batch-provider.ts", import.meta.url));
let daemon: Daemon;
const names = Object.keys(COMMAND_SPECS) as CommandName[];
const onFiles = names.filter((name) => COMMAND_SPECS[name].worksOffline);
const writers = names.filter((name) => COMMAND_SPECS[name].cli && COMMAND_SPECS[name].writes);
const readers = names.filter((name) => COMMAND_SPECS[name].cli && !COMMAND_SPECS[name].writes);

let files = 0;
/** A file that does not exist yet. */
const fresh = (name: string) => join(daemon.dir, `${files++}-${name}`);

/** A call that was reserved and settled. */
let attempt = "";
/** IDs of open WebSockets, one for each time that one is closed. */
let sockets: string[] = [];
/** ID of a job, and IDs of open jobs, one for each time that one is canceled. */
let job = "";
const openJobs: string[] = [];
/** Input of each: as a program sends it, and as a user types it. */
const GIVEN: Readonly<Record<CommandName, readonly [JsonObject, ...string[]]>> = {
  status: [{}],
  fleet: [{}],
  stats: [{}],
  reload: [{}],
  explain: [
    { model: "demo/echo", frontend: "messages", privacy: "required" },
    "demo/echo",
    "-f",
    "messages",
    "--zdr",
  ],
  "config.show": [{}],
  get "config.check"(): [JsonObject, ...string[]] {
    return [{ text: "frontends: [messages]" }, daemon.file];
  },
  "providers.list": [{}],
  "providers.test": [{ provider: "demo", model: "echo" }, "demo", "--model", "echo"],
  "providers.reset": [{ provider: "demo" }, "demo"],
  "models.list": [
    { operation: "chat", provider: "demo" },
    "--operation",
    "chat",
    "--provider",
    "demo",
  ],
  "models.explain": [{ model: "demo/echo" }, "demo/echo"],
  "models.refresh": [{ provider: "demo" }, "demo"],
  "models.diff": [{}],
  "models.accept": [{ version: 1 }, "1"],
  "policy.explain": [{ model: "demo/echo", privacy: "off" }, "demo/echo"],
  "plugins.list": [{}],
  get "requests.show"(): [JsonObject, ...string[]] {
    return [{ id: attempt }, attempt];
  },
  "requests.list": [{ last: 10, limit: 10, waitMs: 1 }, "--once", "--model", "demo/*"],
  "requests.live": [{ limit: 5 }],
  "scopes.list": [{}],
  "scopes.show": [{ name: "session" }, "session"],
  "scopes.reset": [{ name: "session", value: "s" }, "session", "--value", "s"],
  "scopes.raise": [
    { name: "session", value: "s", by: "requests=1/total" },
    "session",
    "--value",
    "s",
    "--by",
    "requests=1/total",
  ],
  "scopes.erase": [{ name: "session", value: "gone" }, "session", "--value", "gone"],
  "sockets.list": [{ limit: 5 }, "--limit", "5"],
  get "sockets.close"(): [JsonObject, ...string[]] {
    const id = sockets.pop() ?? "none is left";
    return [{ id }, id];
  },
  "jobs.list": [{ status: "open", limit: 5 }, "--status", "open", "--limit", "5"],
  get "jobs.show"(): [JsonObject, ...string[]] {
    return [{ id: job }, job];
  },
  get "jobs.cancel"(): [JsonObject, ...string[]] {
    const id = openJobs.pop() ?? "none is left";
    return [{ id }, id];
  },
  "requests.search": [{ limit: 5, status: "ok" }],
  attention: [{}],
  "requests.stats": [{ windowMs: 60_000 }, "--once", "--window", "1m"],
  "requests.series": [{ step: "hour", by: "model", most: 5 }],
  "usage.series": [{ step: "hour", by: "provider", from: 0, to: 1, most: 5 }],
  "usage.forecast": [{ days: 7 }],
  "ledger.totals": [{ by: ["key", "day"] }, "--by", "key,day"],
  "ledger.caches": [{ by: "model" }, "--by", "model"],
  "ledger.entries": [{ limit: 10 }, "--rows", "--once"],
  "ledger.verify": [{}],
  get "ledger.adjust"(): [JsonObject, ...string[]] {
    const reason = "refund";
    return [{ attempt, usd: "-0.25", reason }, attempt, "--usd=-0.25", "--reason", reason];
  },
  "ledger.status": [{}],
  get "ledger.archive"(): [JsonObject, ...string[]] {
    const file = fresh("rows.jsonl.gz");
    return [{ file, before: 0 }, file, "--before", "1970-01-01"];
  },
  "ledger.prune": [{ before: 0, dryRun: true }, "--older", "20000d", "--dry-run"],
  get backup(): [JsonObject, ...string[]] {
    const file = fresh("backup.tar");
    return [{ file }, file];
  },
  erase: [{ label: "user=4711" }, "--label", "user=4711"],
  "keys.create": [
    { name: "by-hand", models: ["demo/*"], limits: ["requests=6/day"] },
    "--name",
    "by-hand",
    "--models",
    "demo/*",
    "--limit",
    "requests=6/day",
  ],
  get "admins.create"(): [JsonObject, ...string[]] {
    const name = `admin-${files++}`;
    return [{ name, role: "viewer" }, name, "--role", "viewer"];
  },
  "admins.list": [{}],
  "admins.revoke": [{ id: "leaver" }, "leaver"],
  "audit.list": [{ limit: 5 }, "--limit", "5"],
  "sessions.list": [{}],
  "sessions.revoke": [{}],
  console: [{}],
  "keys.list": [{}],
  "keys.show": [{ id: "kept" }, "kept"],
  "keys.move": [{ id: "kept" }, "kept"],
  "keys.rotate": [{ id: "kept", overlapMs: 60_000 }, "kept", "--overlap", "1m"],
  "keys.revoke": [{ id: "ended" }, "ended"],
  "keys.update": [{ id: "kept", privacy: "off" }, "kept", "--privacy", "off"],
  get "keys.import"(): [JsonObject, ...string[]] {
    const file = fresh("keys.json");
    const digest = "0f".repeat(32);
    writeFileSync(file, JSON.stringify([{ token: digest, key_alias: "theirs" }]));
    return [{ keys: [{ digest, name: "theirs" }] }, file];
  },
  "accounts.list": [{}],
  "accounts.show": [{ id: "team" }, "team"],
  get "accounts.create"(): [JsonObject, ...string[]] {
    const id = `made-${files++}`;
    return [{ id, parent: "team" }, id, "--parent", "team"];
  },
  "accounts.update": [{ id: "team", name: "Team" }, "team", "--name", "Team"],
  get "accounts.close"(): [JsonObject, ...string[]] {
    return [{ id: "over" }, "over"];
  },
};

beforeAll(async () => {
  daemon = await startDaemon({
    yaml:
      "admin: { port: 0 }\nfrontends: [messages, chat-completions, responses, models, jobs]\nscopes: { session: { from: [session], within: gateway, limits: [requests=9/total] } }\nproviders:\n  demo: { use: demo }\n" +
      `  fake: { use: ${fakeProvider}, with: { api_key: k } }\n`,
  });
  for (const name of ["kept", "ended"]) await daemon.ask("keys.create", { name });
  for (const id of ["team", "over"]) await daemon.ask("accounts.create", { id });
  await daemon.ask("admins.create", { name: "leaver", role: "viewer" });
  await fetch(`${daemon.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${daemon.key}`,
      "session-id": "s",
    },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  }).then((answer) => answer.text());
  const { items } = (await daemon.ask("ledger.entries", { state: "exact" })) as never as {
    items: readonly { attempt: string }[];
  };
  attempt = items[0]!.attempt;
  for (let n = 0; n < 6; n++) await openSocket(`${daemon.url}/v1/responses`, { key: daemon.key });
  for (let n = 0; n < 6; n++) openJobs.push(await createBatch());
  job = openJobs.pop()!;
  const open = (await daemon.ask("sockets.list", {})) as never as LiveSockets;
  sockets = open.items.map(({ id }) => id);
});
afterAll(() => daemon?.[Symbol.asyncDispose]());

/** Creates a batch that ends only if it is canceled. */
async function createBatch(): Promise<string> {
  const authorization = `Bearer ${daemon.key}`;
  const form = new FormData();
  const body = { model: "fake/endless", max_tokens: 9, messages: [{ role: "user", content: "x" }] };
  const line = { custom_id: "1", method: "POST", url: "/v1/chat/completions", body };
  form.set("purpose", "batch");
  form.set("file", new Blob([JSON.stringify(line)]), "in.jsonl");
  const init = { method: "POST", headers: { authorization }, body: form };
  const file = (await (await fetch(`${daemon.url}/v1/files`, init)).json()) as { id: string };
  const created = await fetch(`${daemon.url}/v1/batches`, {
    method: "POST",
    headers: { authorization, "content-type": "application/json" },
    body: JSON.stringify({
      input_file_id: file.id,
      endpoint: "/v1/chat/completions",
      completion_window: "24h",
    }),
  });
  return ((await created.json()) as { id: string }).id;
}

/** As typed, with the output on stdout. */
async function tollgate(name: CommandName): Promise<{ code: number; out: string }> {
  const [, ...words] = GIVEN[name];
  const parts: string[] = [];
  const heard = (chunk: string | Uint8Array) => (parts.push(String(chunk)), true);
  const [out, err] = [process.stdout, process.stderr].map((stream) =>
    vi.spyOn(stream, "write").mockImplementation(heard as never),
  );
  err!.mockImplementation((() => true) as never);
  try {
    const verb = COMMAND_SPECS[name].cli!.words.split(" ");
    const code = await main([...verb, ...words, "-c", daemon.file, "--json"], false);
    return { code, out: parts.join("") };
  } finally {
    out!.mockRestore();
    err!.mockRestore();
  }
}

const wrongIn = (name: CommandName, value: unknown) =>
  getValidator(COMMAND_SPECS[name].output as Schema)(value).errors;

/** Null removes a value of a key or an account. */
const takesNull = ({ type, enum: values }: Schema): boolean =>
  [type, values].some(
    (each) => Array.isArray(each) && each.some((one) => one === "null" || one === null),
  );

/** For each command, invalid inputs, and the member that the error must name. */
function wrong(name: CommandName): [input: JsonObject, member: string][] {
  const schema: Schema = COMMAND_SPECS[name].input;
  const [input] = GIVEN[name];
  const properties = Object.keys(schema["properties"] as object);
  return [
    [{ ...input, nonsense: 1 }, "nonsense"],
    ...properties.map((each): [JsonObject, string] => [{ ...input, [each]: [{ no: 1 }] }, each]),
    ...properties
      .filter((each) => !takesNull((schema["properties"] as Record<string, Schema>)[each]!))
      .map((each): [JsonObject, string] => [{ ...input, [each]: null }, each]),
    ...((schema["required"] ?? []) as string[]).map((each): [JsonObject, string] => [
      Object.fromEntries(Object.entries(input).filter(([key]) => key !== each)),
      each,
    ]),
  ];
}

const fault = (work: Promise<unknown>) =>
  work.then(
    () => undefined,
    (error: unknown) => getFault(error),
  );

const live = new Map<CommandName, string>();

describe("on the control socket", () => {
  it.each(names)("%s returns a result that matches its schema", async (name) => {
    expect(wrongIn(name, await daemon.ask(name, GIVEN[name][0]))).toEqual([]);
  });

  it.each(names)("%s names the invalid member and the expected value", async (name) => {
    for (const [input, member] of wrong(name)) {
      const said = await fault(daemon.ask(name, input));
      expect(said, JSON.stringify(input)).toMatchObject({ kind: "invalid", code: "bad_input" });
      expect(said!.message).toContain(member);
      expect(said!.message).toMatch(/expected|unknown key|is missing|missing|must/);
    }
  });
});

describe("on the command line with a running gateway", () => {
  // Files contain what was written before.
  it.each([...writers, ...readers])("%s", async (name) => {
    const { code, out } = await tollgate(name);
    expect([code, out]).toEqual([0, expect.anything()]);
    live.set(name, out);
    // The reference names the members of the output.
    const members = jsonMembersOf(COMMAND_SPECS[name].cli!.words);
    if (members)
      expect(Object.keys(JSON.parse(out) as object)).toEqual(expect.arrayContaining([...members]));
  });
});

describe("on the command line without a gateway", () => {
  beforeAll(() => daemon.stop());

  it.each(
    [...onFiles].sort((a, b) => Number(COMMAND_SPECS[a].writes) - Number(COMMAND_SPECS[b].writes)),
  )("%s", async (name) => {
    const { code, out } = await tollgate(name);
    expect(code).toBe(0);
    // The running gateway has the request in its history, and some keys were created since.
    const changed = ["keys.list", "keys.show", "requests.show", "audit.list"].includes(name);
    if (!COMMAND_SPECS[name].writes && !changed) expect(out).toBe(live.get(name));
  });

  it.each(names.filter((name) => !COMMAND_SPECS[name].worksOffline && COMMAND_SPECS[name].cli))(
    "%s reports that it needs a running gateway",
    async (name) => {
      const { code, out } = await tollgate(name);
      expect([code, JSON.parse(out)]).toMatchObject([1, { error: { code: "not_running" } }]);
    },
  );

  it("rejects invalid input with the same message", async () => {
    const loaded = await loadGatewayConfig(daemon.file);
    const made = await startDryRun({ loaded, config: loaded.config!, ...quietLog() });
    if ("problems" in made) throw new Error("it is fine");
    await using rehearsal = made;
    const commands: Readonly<Record<string, (input: JsonObject) => Promise<unknown>>> =
      rehearsal.commands;
    for (const name of onFiles.filter((each) => commands[each]))
      for (const [input, member] of wrong(name)) {
        const said = await fault(commands[name]!(input));
        expect(said).toMatchObject({ kind: "invalid", code: "bad_input" });
        expect(said!.message).toContain(member);
      }
  });
});

describe("the command table", () => {
  it("lists each command of the command line with its summary", async () => {
    for (const name of names) {
      const { cli, summary } = COMMAND_SPECS[name];
      const [verb, part] = cli?.words.split(" ") ?? [];
      if (verb === undefined) continue;
      const entry = VERBS[verb]!;
      const { command } = await entry.load();
      if (part === undefined) continue;
      expect(command.subcommands![part]!.summary).toBe(summary);
    }
  });

  it("a viewer cannot use a command that writes", () => {
    for (const name of names)
      if (COMMAND_SPECS[name].writes) expect(COMMAND_SPECS[name].role, name).not.toBe("viewer");
  });
});

it("a plugin's command has the same description", async () => {
  const again = await startDaemon({ yaml: "providers:\n  demo: { use: demo }\n" });
  await using _ = again;
  const { plugins } = (await again.ask("plugins.list")) as { plugins: JsonObject[] };
  const commands = plugins.flatMap(({ commands }) => commands as JsonObject[]);
  expect(commands.length).toBeGreaterThan(0);
  for (const command of commands)
    expect(Object.keys(command as Record<string, Json>).toSorted()).toEqual([
      "input",
      "name",
      "output",
      "role",
      "summary",
      "writes",
    ]);
});
