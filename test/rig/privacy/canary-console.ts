// Everything that the console receives: its pages, and the response to each command of a page, in a
// session opened by a link.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "tollgate/plugin";
import { COMMAND_SPECS } from "../../../src/admin/schema/command-specs.ts";
import { VIEWS } from "../../console/views.ts";
import type { Daemon } from "../../kit/process/daemon.ts";

const WEB = join(import.meta.dirname, "../../../plugins/observers/console/web");
/** Headers of every request of a page. */
const OURS = { "content-type": "application/json", "x-tollgate-console": "1" };

/** Names of commands in the pages' code. */
const named = (): string[] => {
  const words = globSync("**/*.ts", { cwd: WEB }).flatMap((file) =>
    [...readFileSync(join(WEB, file), "utf8").matchAll(/"([a-z]+(?:\.[a-z]+)?)"/g)].map(
      ([, word]) => word!,
    ),
  );
  return Object.keys(COMMAND_SPECS).filter((name) => words.includes(name));
};

export interface Reader {
  /** A file or page was sent, or a command has responded. */
  readonly look: (where: string, text: string) => void;
  /** From here on it must be nowhere either. */
  readonly secret: (name: string, word: string) => void;
  readonly wrong: (line: string) => void;
}

/** `ids`: of requests. `prompt`: the playground's request to a model. */
export async function readConsole(
  gateway: Daemon,
  of: { readonly ids: readonly string[]; readonly attempt: string; readonly prompt: string },
  { look, secret, wrong }: Reader,
): Promise<void> {
  const { url } = (await gateway.ask("console")) as { url: string };
  const { origin, hash } = new URL(url);
  const code = hash.slice(1);
  const came = await fetch(`${origin}/admin/v1/session`, {
    method: "POST",
    headers: { ...OURS, origin },
    body: JSON.stringify({ code }),
  });
  look("console: session", await came.text());
  const cookie = came.headers.get("set-cookie")!.split(";")[0]!;
  secret("the link's code", code);
  secret("the session's word", cookie.split("=")[1]!);
  const headers = { ...OURS, origin, cookie };
  const ask = async (name: string, input: JsonObject): Promise<Record<string, unknown>> => {
    const body = JSON.stringify(input);
    const answer = await fetch(`${origin}/admin/v1/${name}`, { method: "POST", headers, body });
    const text = await answer.text();
    look(`console: ${name}`, JSON.stringify([...answer.headers]) + text);
    if (!answer.ok) wrong(`console: ${name} answers ${answer.status}: ${text}`);
    return JSON.parse(text) as Record<string, unknown>;
  };
  const page = async (path: string) => {
    const text = await (await fetch(origin + path, { headers: { cookie } })).text();
    look(`console: ${path}`, text);
    return text;
  };
  for (const { address } of VIEWS) await page(`/console${address}`);
  for (const [file] of (await page("/console")).matchAll(/\/console\/assets\/[\w.]+/g))
    await page(file);
  await page("/admin/v1/session");

  const asked = new Set<string>();
  const give = async (name: string, input: JsonObject) => {
    asked.add(name);
    return ask(name, input);
  };
  for (const [name, inputs] of Object.entries(READ))
    for (const one of inputs) await give(name, one);
  for (const id of of.ids) await give("requests.show", { id });
  await give("accounts.create", { id: "canary-team", name: "Team" });
  await give("accounts.update", { id: "canary-team", name: "The team" });
  const made = await give("keys.create", { name: "from the console", account: "canary-team" });
  secret("a key of the console", String(made["secret"]));
  const { id } = made["key"] as { id: string };
  const played = await fetch(`${origin}/console/ask`, {
    method: "POST",
    headers,
    body: JSON.stringify({
      path: "/v1/chat/completions",
      key: made["secret"],
      body: JSON.stringify({
        model: "clean-chat/model",
        messages: [{ role: "user", content: of.prompt }],
      }),
    }),
  });
  // The playground shows a response.
  await played.arrayBuffer();
  if (JSON.parse(played.headers.get("x-answer") ?? "{}").status !== 200)
    wrong("console: the playground was not answered");
  await give("keys.show", { id });
  await give("keys.update", { id, name: "changed in the console" });
  await give("keys.move", { id });
  const turned = await give("keys.rotate", { id, overlapMs: 0 });
  secret("a key that was rotated", String(turned["secret"]));
  await give("keys.revoke", { id });
  await give("accounts.close", { id: "canary-team" });
  await give("ledger.adjust", { attempt: of.attempt, usd: "0.01", reason: "A bill" });
  await give("backup", { file: join(gateway.dir, "canary.tar") });
  const admin = await give("admins.create", { name: "canary-admin", role: "viewer" });
  secret("an admin token", String(admin["secret"]));
  await give("admins.revoke", { id: (admin["admin"] as { id: string }).id });
  // Its actions are in lists now.
  for (const name of ["audit.list", "keys.list", "accounts.list", "requests.list"])
    await give(name, {});
  const { url: next } = await give("console", {});
  secret("the next link's word", new URL(String(next)).hash.slice(1));
  await give("sessions.revoke", {});
  for (const name of named()) if (!asked.has(name)) wrong(`console: ${name} was not read`);
}

const HOUR = 3_600_000;
const from = Date.now() - HOUR;
const to = from + 3 * HOUR;
/** Requests of pages without an ID. */
const READ: Readonly<Record<string, readonly JsonObject[]>> = {
  status: [{}],
  fleet: [{}],
  reload: [{}],
  stats: [{}],
  "requests.stats": [{ windowMs: HOUR }],
  "requests.series": ["all", "frontend", "model", "provider", "key", "account"].map((by) => ({
    from,
    to,
    step: "minute",
    by,
  })),
  "usage.series": [{ from, to, step: "hour", by: "model" }],
  "ledger.totals": ["model", "key", "label", "state"].map((by) => ({ from, to, by: [by] })),
  "ledger.status": [{}],
  "ledger.entries": [{ from, limit: 500 }],
  "ledger.verify": [{}],
  "ledger.prune": [{ before: from - 48 * HOUR, dryRun: true }],
  "requests.list": [{ limit: 500 }, { limit: 500, failed: true }],
  "requests.live": [{}],
  "requests.search": [{}, { from, status: "failed" }],
  attention: [{}],
  "models.list": [{}, { operation: "image" }, { privacy: "required" }],
  "models.explain": [{ model: "over" }],
  "models.refresh": [{}],
  "policy.explain": [{ model: "over" }],
  explain: [{ model: "over" }, { model: "clean-chat/model", privacy: "strict" }],
  "plugins.list": [{}],
  "providers.list": [{}],
  "providers.test": [{ provider: "clean-chat" }],
  "providers.reset": [{ provider: "clean-chat" }],
  "sockets.list": [{}],
  "config.show": [{}],
  "config.check": [{ text: "providers: { demo: { use: dmeo } }\n" }],
  "keys.list": [{}],
  "accounts.list": [{}],
  "admins.list": [{}],
  "sessions.list": [{}],
  "audit.list": [{ limit: 500 }],
};
