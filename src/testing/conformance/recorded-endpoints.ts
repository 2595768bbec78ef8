// Finds the recordings for checking a provider's decoders: recordings of the author, or responses
// of the fake upstream if it supports the protocol. If there are neither, the decoder is reported
// as not checked.
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Protocol, ClientHalf, ServerHalf } from "../../plugin/protocol.ts";
import type { Provider, ProtocolEndpoint } from "../../plugin/provider.ts";
import type { ScriptedResponse } from "../upstream/scripted-response.ts";
import { readRecordings, type Recording } from "../recording.ts";
import { say, type ScriptProtocol } from "../upstream/model-script.ts";
import { notCheckedMessage, type ConformanceSubject } from "./subject.ts";
import { isProtocolEndpoint } from "./operation.ts";
import type { Operation } from "../../model/request.ts";
import { defineFrontend, defineProvider, type Definition } from "../../plugin/define.ts";
import type { apiKeySchema, NoOptions } from "../../plugin/schema.ts";
import { startTestGateway, type TestGateway } from "../gateway.ts";

/** An endpoint with the recordings for its decoder. */
export interface RecordedEndpoint {
  readonly endpoint: ProtocolEndpoint;
  readonly protocol: Protocol;
  readonly recordings: readonly Recording[];
}

/** Returns one endpoint for each protocol of the provider's protocol endpoints. */
export function recordedEndpoints(
  { endpoints }: Provider,
  subject: ConformanceSubject,
): RecordedEndpoint[] {
  const first = new Map<string, ProtocolEndpoint>();
  for (const endpoint of endpoints.filter(isProtocolEndpoint))
    // A protocol that is only relayed has no decoder.
    if (endpoint.protocol.client && !first.has(endpoint.protocol.id))
      first.set(endpoint.protocol.id, endpoint);
  return [...first].map(([id, endpoint]) => ({
    endpoint,
    protocol: endpoint.protocol,
    recordings:
      findRecordings(id, first.size, subject) ??
      scriptedRecordings(id) ??
      failWithoutRecordings(id, subject),
  }));
}

/**
 * Recordings are in `<folder>/<protocol>/…`, or in `<folder>/…` if the provider has one protocol.
 */
function findRecordings(id: string, protocols: number, { recordings: folder }: ConformanceSubject) {
  if (folder === undefined || folder === false) return undefined;
  const own = join(folder, id);
  if (existsSync(own)) return readRecordings(own);
  return protocols === 1 ? readRecordings(folder) : undefined;
}

function failWithoutRecordings(
  id: string,
  { recordings: folder }: ConformanceSubject,
): readonly Recording[] {
  if (folder === false) return [];
  throw new Error(notCheckedMessage(`The decoder of ${id}`, `recordings/${id}`));
}

const SCRIPTS = {
  "said text": say("Hello, ").say("wörld ☕"),
  "said calls": say("One moment.")
    .call("look_up", { city: "Oslo" }, "call_1")
    .call("now", {}, "call_2"),
} as const;

/** Minimal client requests for the protocols that the fake upstream supports. */
const SAMPLE_REQUESTS: { readonly [P in ScriptProtocol]: Recording["request"] } = {
  "chat-completions": { model: "model", messages: [{ role: "user", content: "Hello" }] },
  messages: { model: "model", max_tokens: 64, messages: [{ role: "user", content: "Hello" }] },
  responses: { model: "model", input: "Hello" },
};

function scriptedRecordings(id: string): Recording[] | undefined {
  if (!Object.hasOwn(SAMPLE_REQUESTS, id)) return undefined;
  const protocol = id as ScriptProtocol;
  return Object.entries(SCRIPTS).flatMap(([name, speech]) =>
    [true, false].map((stream) => {
      const request = { ...SAMPLE_REQUESTS[protocol], ...(stream && { stream }) };
      const body = {
        ...request,
        ...(protocol === "chat-completions" &&
          stream && { stream_options: { include_usage: true } }),
      };
      return toRecording(
        `${name}, ${stream ? "streamed" : "whole"}`,
        request,
        speech.toProtocol(protocol, { stream, body }),
      );
    }),
  );
}

function toRecording(
  name: string,
  request: Recording["request"],
  answer: ScriptedResponse,
): Recording {
  const pieces = [answer.body ?? []].flat().map((piece) => {
    const bytes = typeof piece === "object" && "tells" in piece ? piece.bytes : piece;
    return Buffer.from(bytes as Buffer);
  });
  const headers = Object.entries(answer.headers ?? {}).map(([key, value]) => [key, String(value)]);
  return {
    name,
    request,
    status: answer.status ?? 200,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(pieces),
    events: undefined,
  };
}

// Mounts a provider's endpoints in a real gateway, once for each case, with their base URL set to
// the fake upstream.

/** One recording in one mode, in the gateway of `startCasesGateway`. */
export interface GatewayCase {
  readonly endpoint: ProtocolEndpoint;
  readonly client: ClientHalf<Operation>;
  readonly server: ServerHalf<Operation>;
  readonly recording: Recording;
  readonly stream: boolean;
  readonly mode: "passthrough" | "translated";
  /**
   * Index of its provider under `providers:`. Each case has its own provider, so that a cooldown
   * after one response does not affect other cases.
   */
  readonly providerIndex: number;
}

/**
 * Starts a gateway that has one provider for each case. The caller must end it. Rejects if the
 * gateway rejects its config.
 */
export function startCasesGateway(
  cases: readonly GatewayCase[],
  subject: ConformanceSubject,
  url: string,
): Promise<TestGateway> {
  const { fields, env } = credentialWithEnv(subject);
  const judged = defineProvider<NoOptions, typeof apiKeySchema>({
    api: 1,
    name: "judged",
    summary: "Test provider of the plugin test kit",
    ...("credential" in subject.definition && {
      credential: subject.definition.credential as typeof apiKeySchema,
    }),
    setup(_options, { id }) {
      const { endpoint } = cases[Number(id.split(".p").at(-1))]!;
      const base = `${url}/${id}${new URL(endpoint.base).pathname.replace(/\/+$/, "")}`;
      return {
        endpoints: [
          Object.assign(Object.create(endpoint) as ProtocolEndpoint, {
            ...endpoint,
            base,
            servesModel: () => true,
          }),
        ],
        listModels: async () => [
          { model: "model", operation: endpoint.protocol.operationSpec.name },
        ],
      };
    },
  });
  const frontends = [...new Set(cases.map(({ endpoint }) => endpoint.protocol))].flatMap(
    (protocol, i): [string, Definition][] =>
      (["passthrough", "translated"] as const).map((lane) => [
        `${lane}-${i}`,
        createFrontend(protocol, lane),
      ]),
  );
  return startTestGateway({
    plugins: { judged, ...Object.fromEntries(frontends) },
    env,
    yaml: [
      `frontends: ${JSON.stringify(frontends.map(([use]) => use))}`,
      "catalog: { refresh: 1h }",
      // Without retries, each response is checked in the form in which it was received.
      "retries: { per_target: 1, total: 1 }",
      "providers:",
      ...cases.map(
        ({ providerIndex }) =>
          `  p${providerIndex}: { use: judged${fields === undefined ? "" : `, with: ${JSON.stringify(fields)}`} }`,
      ),
    ].join("\n"),
  });
}

/**
 * Mounts the protocol under another ID for translated mode. The gateway then treats it as a
 * different protocol and translates the responses.
 */
function createFrontend(protocol: Protocol, lane: GatewayCase["mode"]): Definition {
  const spoken =
    lane === "passthrough" ? protocol : { ...protocol, id: `${protocol.id}-elsewhere` };
  return defineFrontend({
    api: 1,
    name: `${protocol.id}-${lane}`,
    summary: "Test frontend of the plugin test kit",
    setup: () => ({
      protocol: spoken,
      routes: [
        {
          method: "POST",
          path: `/${protocol.id}/${lane}`,
          actionType: "generate",
          body: "either",
          readInput: (x) => ({
            model: x.query.get("model") ?? "",
            stream: x.query.get("stream") === "true",
          }),
        },
      ],
    }),
  });
}

/**
 * Puts text fields into environment variables, as an operator would, and fills in fields that the
 * author did not provide.
 */
export function credentialWithEnv({ definition, credential }: ConformanceSubject): {
  fields: Readonly<Record<string, unknown>> | undefined;
  env: Record<string, string>;
} {
  const schema = "credential" in definition ? definition.credential : undefined;
  if (!schema) return { fields: undefined, env: {} };
  const env: Record<string, string> = {};
  const fields: Record<string, unknown> = { ...credential };
  for (const name of (schema["required"] ?? []) as readonly string[]) fields[name] ??= "kit-7f3a";
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value !== "string") continue;
    const variable = `KIT_${name.toUpperCase().replace(/\W/g, "_")}`;
    env[variable] = value;
    fields[name] = `\${env:${variable}}`;
  }
  return { fields, env };
}
