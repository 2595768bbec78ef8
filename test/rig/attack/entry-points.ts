// Access attempts: an admin that reads another one's result, a package that loads what its lock
// does not cover, and a child plugin that signals its gateway. Each draws its attempts at random.
import { execFile } from "node:child_process";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { childrenOf, isAlive } from "../../kit/process/processes.ts";
import { type Daemon, startDaemon } from "../../kit/process/daemon.ts";
import { GUARD } from "../../e2e/plugins/broken-plugins.ts";
import type { Chance } from "../rig.ts";
import type { Attack } from "./target.ts";

const ACCOUNTS = [undefined, "acme", "research", "sales"];
const ROLES = ["operator", "owner"] as const;
const FILE_TOKEN = "file-token-of-the-attack-0123456789";
const PROVIDERS = "providers: { demo: { use: demo } }\n";

interface Person {
  readonly token: string;
  readonly account: string | undefined;
}

async function create(at: Daemon, name: string, more: object): Promise<string | undefined> {
  const made = (await at
    .ask("admins.create", { name, ...more } as never)
    .catch(() => undefined)) as { secret?: string } | undefined;
  return made?.secret;
}

/**
 * Principals of every role and account send one command with one Idempotency-Key, repeatedly and in
 * any order.
 */
async function principals(chance: Chance, rounds: number): Promise<string[]> {
  const wrong: string[] = [];
  await using at = await startDaemon({
    yaml: `admin: { port: 0, tokens: { ann: { role: owner, token: ${FILE_TOKEN} } } }
accounts: { acme: {}, research: { parent: acme }, sales: { parent: acme } }
${PROVIDERS}`,
  });
  const { adminUrl: admin } = (await at.ask("status")) as { adminUrl: string };
  for (const name of ["ann", "ANN", "\uff41nn", "oidc:ann", "file:ann"])
    if (await create(at, name, { role: "owner" })) wrong.push(`a second admin is named ${name}`);
  const people: Person[] = [{ token: FILE_TOKEN, account: undefined }];
  for (let i = 0; i < 12; i++) {
    const account = chance.one(ACCOUNTS);
    const more = { role: chance.one(ROLES), ...(account !== undefined && { account }) };
    people.push({ token: (await create(at, `p${i}`, more))!, account });
  }
  const seen = new Map<string, string>();
  for (let i = 0; i < rounds; i++) {
    const person = chance.one(people);
    const key = `k${chance.below(3)}`;
    const res = await fetch(`${admin}/admin/v1/keys.create`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${person.token}`,
        "content-type": "application/json",
        "idempotency-key": key,
      },
      body: "{}",
    });
    const said = (await res.json()) as { secret?: string; key?: { account?: string } };
    if (said.secret === undefined) {
      wrong.push(`keys.create of ${person.account} answers ${res.status}`);
      continue;
    }
    const owner = seen.get(said.secret);
    const own = `${person.token} ${key}`;
    if (owner !== undefined && owner !== own) wrong.push("one principal has another one's secret");
    seen.set(said.secret, own);
    if (said.key?.account !== person.account)
      wrong.push(`${person.account} has ${said.key?.account}`);
  }
  if (seen.size !== new Set(seen.values()).size)
    wrong.push("one principal has two results of one key");
  return wrong;
}

async function packages(chance: Chance, trees: number): Promise<string[]> {
  const script = join(import.meta.dirname, "lock-bypass.ts");
  const seed = chance.below(1e6);
  const words = ["--conditions=tollgate-source", script, String(trees), String(seed)];
  const { stdout } = await promisify(execFile)(process.execPath, words, { maxBuffer: 1 << 24 });
  const { wrong, counts } = JSON.parse(stdout) as { wrong: string[]; counts: { loaded: number } };
  return counts.loaded === 0 ? ["no package has loaded anything"] : wrong;
}

const SIGNALS = ["SIGKILL", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGSTOP", "SIGINT"];
const DEBUGGER = 9229;

const answers = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false));
    socket.once("close", () => socket.destroy());
  });

/**
 * A child plugin sends every signal in every way to every process of its gateway. Then SIGUSR1 is
 * sent from outside.
 */
async function signals(chance: Chance, times: number): Promise<string[]> {
  const wrong: string[] = [];
  await using at = await startDaemon({
    yaml: `workers: 2
frontends: [chat-completions]
middleware: [auth, { use: ./guard.ts, isolate: child, timeout: 20s, on_error: continue }]
${PROVIDERS}`,
    files: { "guard.ts": GUARD, "named.txt": "named" },
  });
  const nodes = () => [
    { pid: at.pid, args: "" },
    ...childrenOf(at.pid).filter(({ args }) => /^[^ ]*node --/.test(args)),
  ];
  const before = nodes();
  for (let i = 0; i < times; i++) {
    const { pid } = chance.one(before);
    const res = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${at.key}`,
        "content-type": "application/json",
        "x-signal": `${pid} ${chance.one(SIGNALS)}`,
      },
      body: '{"model":"demo/echo","messages":[{"role":"user","content":"do:signals;"}]}',
    });
    await res.arrayBuffer();
    const sent = res.headers.get("x-sent");
    if (sent !== "none")
      wrong.push(`a child sends signals by ${sent ?? "nothing: it was not asked"}`);
  }
  for (const { pid } of before) if (isAlive(pid)) process.kill(pid, "SIGUSR1");
  await sleep(500);
  const gone = before.filter(({ pid }) => !isAlive(pid));
  if (gone.length > 0) wrong.push(`${gone.length} of ${before.length} processes have ended`);
  if (await answers(DEBUGGER)) wrong.push(`a debugger listens on ${DEBUGGER}`);
  if (at.log.some(({ msg }) => /reload|worker replaced|takes over/.test(String(msg))))
    wrong.push("a signal of a child was obeyed");
  return wrong;
}

/** `requests`: for the whole rig. These attacks use a share of it. */
export const attacks = (requests: number): readonly Attack[] => [
  {
    name: "admins that share a name and an Idempotency-Key",
    run: ({ chance }) => principals(chance, Math.min(2_000, Math.ceil(requests / 50))),
  },
  {
    name: "packages that load what their lock does not cover",
    run: ({ chance }) => packages(chance, Math.min(200, Math.ceil(requests / 300))),
  },
  {
    name: "a child that signals its gateway, and a debugger that is asked for",
    run: ({ chance }) => signals(chance, Math.min(300, Math.ceil(requests / 50))),
  },
];
