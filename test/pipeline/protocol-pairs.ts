// A gateway in one process between clients and upstreams of every protocol, which report what they
// received.
import zdr from "../../plugins/middleware/zdr.ts";
import { chatCompletions } from "tollgate/protocols/chat-completions";
import { gemini, geminiImage } from "tollgate/protocols/gemini";
import { images } from "tollgate/protocols/images";
import { messages } from "tollgate/protocols/messages";
import { responses } from "tollgate/protocols/responses";
import { jsonResponse, say, startUpstream, type TestUpstream } from "tollgate/testing";
import type { DataPolicy, Hooks, Identity, Protocol, PipelineRoute } from "tollgate/plugin";
import { inAny } from "../protocols/gemini/speech.ts";
import { mark } from "./privacy/foreign-fields.ts";
import { startTestServices } from "../kit/test-services.ts";

const hi = { role: "user", content: "Hi" };
/** Minimal client request of each protocol. */
export const CLIENTS: { readonly [id: string]: { protocol: Protocol<any>; least: object } } = {
  "chat-completions": { protocol: chatCompletions(), least: { messages: [hi] } },
  messages: { protocol: messages(), least: { max_tokens: 10, messages: [hi] } },
  responses: { protocol: responses(), least: { input: "Hi" } },
  gemini: { protocol: gemini(), least: { contents: [{ role: "user", parts: [{ text: "Hi" }] }] } },
  images: { protocol: images(), least: { prompt: "A gate" } },
};
export const TARGETS: { readonly [id: string]: Protocol<any> } = {
  "chat-completions": chatCompletions(),
  messages: messages(),
  responses: responses(),
  gemini: gemini(),
  images: images(),
  "gemini-image": geminiImage(),
};
export const isImage = (id: string): boolean => id === "images" || id === "gemini-image";
/** Every path of a request: from a client's protocol to an upstream's. */
export const ROADS: readonly (readonly [from: string, into: string])[] = Object.keys(
  CLIENTS,
).flatMap((from) =>
  Object.keys(TARGETS)
    .filter((into) => isImage(into) === isImage(from))
    .map((into) => [from, into] as const),
);

/**
 * For `everyNth`: each remainder occurs for all paths of a client, and for all paths to a target.
 */
export const columnOf = (from: string, into: string): number =>
  Object.keys(CLIENTS).indexOf(from) + Object.keys(TARGETS).indexOf(into);

export interface Ways {
  stateMode?: "reject" | "relay";
  identity?: Omit<Identity, "id">;
  zdrAllowedFields?: readonly string[];
  /** The protocol that the frontend states. */
  read?: PipelineRoute["readInput"];
  /** The provider's data policy, in addition to the operator's declaration. */
  dataPolicy?: DataPolicy;
}

/** Any signature: these are stored and returned. */
const KEPT = [`*${mark("models")}`, "*:online", "@preset/*"].map((model) => ({
  model,
  dataPolicy: { requires: "unavailable" as const, retention: { kind: "unknown" as const } },
}));

const DECLARED = { declared: true, until: "2099-01-01" };

export interface Sent {
  /** Everything that upstream received for it. "" if nothing was sent. */
  readonly text: string;
  readonly status: number;
  // oxlint-disable-next-line typescript/no-explicit-any
  readonly error: any;
  readonly warnings: string;
}

export interface Roads extends AsyncDisposable {
  readonly up: TestUpstream;
  open(from: string, ways?: Ways): Promise<Road>;
}

export interface Road extends AsyncDisposable {
  /** `path`: "/toy/count" requests a token count. */
  send(
    into: string,
    fields: object,
    headers?: Record<string, string>,
    path?: string,
  ): Promise<Sent>;
}

export async function roads(): Promise<Roads> {
  const up = await startUpstream({
    "POST /*": (asked) =>
      inAny(say("Hello"), asked) ?? jsonResponse({ error: { message: "no" } }, 400),
  });
  return { up, open: (from, ways = {}) => open(up, from, ways), [Symbol.asyncDispose]: up.close };
}

/** Google's errors have their code and their field among the details. */
// oxlint-disable-next-line typescript/no-explicit-any
function errorOf({ error }: any): any {
  if (!Array.isArray(error.details)) return error;
  const { reason, metadata } = error.details[0];
  return { ...error, code: reason, param: metadata?.param, details: undefined };
}

function provider(up: TestUpstream, id: string, { stateMode, zdrAllowedFields, dataPolicy }: Ways) {
  return {
    endpoints: [
      {
        protocol: TARGETS[id]!,
        base: `${up.url}/${id}/v1`,
        auth: "none" as const,
        ...(dataPolicy && { dataPolicy }),
      },
    ],
    stateMode: stateMode ?? "reject",
    zdrAllowedFields: zdrAllowedFields ?? [],
    exceptions: KEPT,
    credentials: [{ name: "main", fields: {}, weight: 1, models: undefined, zdr: DECLARED }],
    ...(isImage(id) && {
      facts: new Map([["m", { operation: "image" as const }]]),
      listModels: async () => [{ model: "m", operation: "image" as const }],
    }),
  };
}

async function open(up: TestUpstream, from: string, ways: Ways): Promise<Road> {
  const hooks = zdr.setup({ default: "off" } as never, { log: { error() {} } } as never) as Hooks;
  const gate = await startTestServices({
    frontend: CLIENTS[from]!.protocol,
    providers: Object.fromEntries(
      Object.keys(TARGETS).map((id) => [id, provider(up, id, ways)]),
    ) as never,
    hooks: [hooks],
    ...(ways.identity && { identity: ways.identity }),
    ...(ways.read && { read: ways.read }),
  });
  return {
    async send(into, fields, headers = {}, path = "/toy") {
      up.reset();
      const body = { model: `${into}/m`, ...CLIENTS[from]!.least, ...fields };
      const got = await gate.ask(body, { headers, path });
      const said = await got.text();
      const refused = got.status !== 200 && said.startsWith("{");
      return {
        text: up.requests.map((asked) => asked.body.toString()).join("\n"),
        status: got.status,
        error: refused ? errorOf(JSON.parse(said)) : undefined,
        warnings: got.headers.get("x-tollgate-warnings") ?? "",
      };
    },
    [Symbol.asyncDispose]: () => gate[Symbol.asyncDispose](),
  };
}
