// Starts a gateway with its surroundings for tests of plugin authors: a fake upstream, a client,
// and a view of the ledger.
import { callControl } from "../admin/socket/control-client.ts";
import type { Usage } from "../model/usage.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Definition } from "../plugin/define.ts";
import { startTestGateway, type TestGateway } from "./gateway.ts";
import { say, scriptedModel } from "./upstream/model-script.ts";
import { startUpstream, type ScriptedRoutes, type TestUpstream } from "./upstream/upstream.ts";

/** Options for the gateway that a test starts. */
export interface GatewaySetup {
  /**
   * Content of gateway.yaml, as text or as an object. `${env:UPSTREAM}` is the address of the fake
   * upstream. Default for `frontends:` is chat completions, messages, and responses. Without
   * `middleware:`, every client is accepted. Without `store:`, `calls` shows the ledger.
   */
  readonly config: string | { readonly [key: string]: unknown };
  /** Plugins that `use:` can refer to, in addition to the built-in plugins. */
  readonly plugins?: Readonly<Record<string, Definition>>;
  /** Responses of the fake upstream. Default: "Hello", in every protocol that it supports. */
  readonly upstream?: ScriptedRoutes;
  readonly env?: Readonly<Record<string, string>>;
}

/** Options of a client request. */
export interface AskOptions {
  readonly stream?: boolean;
  /** Key that the client presents. Default: "tester". */
  readonly key?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further fields of the body. */
  readonly body?: { readonly [field: string]: unknown };
}

/** Response that a client received. */
export interface ClientAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  /** Text of the model, joined from its pieces. */
  readonly text: string;
  /** Error of the response, including an error that ended a stream. */
  readonly error: { readonly message: string; readonly code?: string } | undefined;
  /** The complete body as it was received. */
  readonly body: string;
}

/**
 * One call in the ledger. `outcome` and the members after it are set when the call is
 * settled.
 */
export interface BilledCall {
  readonly attempt: string;
  readonly provider: string;
  readonly model: string;
  readonly outcome?: string;
  readonly state?: string;
  readonly usage?: Usage;
  readonly costNano?: bigint | null;
}

/** A running gateway with a fake upstream. Disposing of it (`await using`) ends both. */
export interface StartedGateway extends TestGateway {
  readonly upstream: TestUpstream;
  /** Calls in the ledger, in the order in which they started. */
  readonly calls: readonly BilledCall[];
  /** Sends a chat request as a client, in chat completions. */
  ask(model: string, words: string, manner?: AskOptions): Promise<ClientAnswer>;
  /** Runs a command that a plugin adds: `runCommand("observers.counter", "counts")`. */
  runCommand(plugin: string, name: string, input?: JsonObject): Promise<Json>;
}

/** Starts a gateway. Throws with all problems if the gateway rejects its config. */
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

/** JSON is valid YAML. One key per line keeps the top-level keys detectable. */
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

/** Returns the complete response, or each of its events. Empty for any other content. */
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
