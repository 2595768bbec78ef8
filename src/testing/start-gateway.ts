// A gateway with everything around it, for an author's own tests: a fake upstream behind it, clients' words in front of it, and
// what its ledger was told.
import { callControl } from "../admin/socket/control-client.ts";
import type { Usage } from "../model/usage.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Definition } from "../plugin/define.ts";
import { startTestGateway, type TestGateway } from "./gateway.ts";
import { say, scriptedModel } from "./upstream/model-script.ts";
import { startUpstream, type ScriptedRoutes, type TestUpstream } from "./upstream/upstream.ts";

/** What a test says of the gateway that it starts. */
export interface GatewaySetup {
  /**
   * gateway.yaml, as text or as the object that it is. `${env:UPSTREAM}` is where the fake upstream listens. Without `frontends:`
   * chat completions, messages and responses are there; without `middleware:` every client is let in; without `store:` the
   * ledger is told by `calls`.
   */
  readonly config: string | { readonly [key: string]: unknown };
  /** What `use:` may name beside what comes with Tollgate. */
  readonly plugins?: Readonly<Record<string, Definition>>;
  /** What the fake upstream answers. Absent: "Hello", in every protocol that it speaks. */
  readonly upstream?: ScriptedRoutes;
  readonly env?: Readonly<Record<string, string>>;
}

/** How a client asks. */
export interface AskOptions {
  readonly stream?: boolean;
  /** What the client presents; "tester" unless told. */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** More of the body. */
  readonly body?: { readonly [field: string]: unknown };
}

/** What a client got. */
export interface ClientAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** What the model said, put together from its pieces. */
  readonly text: string;
  /** Of an error, also of one that ended a stream. */
  readonly error: { readonly message: string; readonly code?: string } | undefined;
  /** All of it, as it came. */
  readonly body: string;
}

/** One call as the ledger has it. `outcome` and what follows are there when it is settled. */
export interface BilledCall {
  readonly attempt: string;
  readonly provider: string;
  readonly model: string;
  readonly outcome?: string;
  readonly state?: string;
  readonly usage?: Usage;
  readonly costNano?: bigint | null;
}

/** A gateway that serves, with a fake upstream behind it. Ending it (`await using`) ends both. */
export interface StartedGateway extends TestGateway {
  readonly upstream: TestUpstream;
  /** What the ledger holds, in the order in which calls began. */
  readonly calls: readonly BilledCall[];
  /** Asks a chat as a client does, in chat completions. */
  ask(model: string, words: string, manner?: AskOptions): Promise<ClientAnswer>;
  /** Gives a command that a plugin brings: `command("observers.counter", "counts")`. */
  runCommand(plugin: string, name: string, input?: JsonObject): Promise<Json>;
}

/** Starts one. Throws, with every problem in words, when the gateway refuses what it was given. */
export async function startGateway(of: GatewaySetup): Promise<StartedGateway> {
  const up = await startUpstream(of.upstream ?? scriptedModel(say("Hello"), ["model"]));
  const text = typeof of.config === "string" ? of.config : toYaml(of.config);
  const frontends = /^frontends:/m.test(text)
    ? ""
    : "frontends: [chat-completions, messages, responses]\n";
  const at = await startTestGateway({
    yaml: frontends + text,
    env: { UPSTREAM: up.url, ...of.env },
    ...(of.plugins && { plugins: of.plugins }),
  }).catch(async (error: unknown) => {
    await up.close();
    throw error;
  });
  return {
    url: at.url,
    adminUrl: at.adminUrl,
    stateDir: at.stateDir,
    logs: at.logs,
    storeCommands: at.storeCommands,
    upstream: up,
    get calls() {
      return readBilledCalls(at);
    },
    ask: (model, words, manner = {}) => askChat(at.url, model, words, manner),
    runCommand: (plugin, name, input = {}) => callControl(at.stateDir, `${plugin}/${name}`, input),
    async [Symbol.asyncDispose]() {
      await at[Symbol.asyncDispose]();
      await up.close();
    },
  };
}

/** JSON is YAML, and a key a line says which keys there are. */
const toYaml = (config: { readonly [key: string]: unknown }): string =>
  Object.entries(config)
    .map(([key, value]) => `${key}: ${JSON.stringify(value)}`)
    .join("\n");

function readBilledCalls({ storeCommands }: TestGateway): BilledCall[] {
  const calls = new Map<string, BilledCall>();
  for (const row of storeCommands) {
    if (row.do === "reserve") {
      const { provider, model } = row.target;
      calls.set(row.attempt, { attempt: row.attempt, provider, model });
    }
    const open = row.do === "settle" ? calls.get(row.attempt) : undefined;
    if (row.do !== "settle" || !open) continue;
    const { outcome, state, usage, costNano } = row;
    calls.set(row.attempt, { ...open, outcome, state, usage, costNano });
  }
  return [...calls.values()];
}

async function askChat(
  url: string,
  model: string,
  words: string,
  manner: AskOptions,
): Promise<ClientAnswer> {
  const { stream = false, key = "tester" } = manner;
  const response = await fetch(`${url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      ...manner.headers,
    },
    body: JSON.stringify({
      model,
      messages: [{ role: "user", content: words }],
      ...(stream && { stream }),
      ...manner.body,
    }),
  });
  const body = await response.text();
  const parts = parsePayloads(response.headers.get("content-type") ?? "", body);
  const texts = parts.flatMap(({ choices }) => choices?.[0] ?? []);
  return {
    status: response.status,
    headers: Object.fromEntries(response.headers),
    text: texts.map(({ delta, message }) => (delta ?? message)?.content ?? "").join(""),
    error: parts.find(({ error }) => error)?.error,
    body,
  };
}

interface ChatMessagePart {
  readonly content?: string | null;
}
interface ChatPayload {
  readonly choices?: readonly {
    readonly delta?: ChatMessagePart;
    readonly message?: ChatMessagePart;
  }[];
  readonly error?: { readonly message: string; readonly code?: string };
}

/** The whole answer, or each of its events; of what is neither, nothing. */
function parsePayloads(type: string, body: string): ChatPayload[] {
  const texts = type.startsWith("text/event-stream")
    ? body.split("\n").flatMap((line) => /^data: (?!\[DONE\])(.*)$/.exec(line)?.[1] ?? [])
    : [body];
  return texts.flatMap((text) => {
    try {
      return [JSON.parse(text) as ChatPayload];
    } catch {
      return [];
    }
  });
}
