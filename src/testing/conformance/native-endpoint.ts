// Checks of native endpoints beyond the event grammar. The events must match the content that a
// person has verified in a recording. No field of a request may be lost without a report. The
// client must receive the first part of a response before the upstream sends the second.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { getFault } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import { collectResponse } from "../../model/response-collector.ts";
import type { ChatRequest } from "../../model/request.ts";
import { defineProvider } from "../../plugin/define.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { apiKeySchema, NoOptions } from "../../plugin/schema.ts";
import { withoutUndefined } from "../codec.ts";
import { deepFreeze } from "../freeze.ts";
import { startTestGateway, type TestGateway } from "../gateway.ts";
import * as fakes from "../fakes.ts";
import {
  readRecordings,
  replayResponse,
  type ExpectedAnswer,
  type Recording,
} from "../recording.ts";
import { startUpstream } from "../upstream/upstream.ts";
import { createProviderClient, settlesWithin } from "./provider-client.ts";
import { credentialWithEnv } from "./recorded-endpoints.ts";
import { notCheckedMessage, type ConformanceSubject } from "./subject.ts";
import {
  collectEvents,
  isNativeEndpoint,
  pickModel,
  sampleRequest,
  runNative,
  type AnyNativeEndpoint,
} from "./operation.ts";

const nativeEndpoints = ({ endpoints }: Provider): AnyNativeEndpoint[] =>
  endpoints.filter(isNativeEndpoint);

function subjectRecordings({ recordings: folder }: ConformanceSubject): readonly Recording[] {
  const own = folder && existsSync(join(folder, "native")) ? join(folder, "native") : folder;
  return own ? readRecordings(own) : [];
}

/** The events of a recording must match the content that a person wrote in its `expected.json`. */
export async function checkExpected(of: Provider, subject: ConformanceSubject): Promise<void> {
  for (const endpoint of nativeEndpoints(of)) {
    const model = await pickModel(of, endpoint, subject);
    for (const one of subjectRecordings(subject)) {
      if (one.expected === undefined) {
        if (one.events !== undefined || one.status >= 400) continue;
        throw new Error(
          `${one.name}: ${notCheckedMessage("The decoded content", "native")} Add an expected.json next to upstream.http with the content of the response: { "text": "Hello", "usage": { "input": 12, "output": 2 }, "finish": "stop" }, or { "error": "overloaded" }.`,
        );
      }
      await using up = await startUpstream({ "*": replayResponse(one) });
      const got = await runNative(endpoint, model, subject, up).then(
        (events) => toExpected(events),
        (error: unknown): ExpectedAnswer => ({ error: getFault(error)?.kind ?? String(error) }),
      );
      const wanted = Object.keys(one.expected) as (keyof ExpectedAnswer)[];
      for (const member of one.expected.error === undefined ? wanted : (["error"] as const))
        assert.deepEqual(
          withoutUndefined(got[member]),
          withoutUndefined(one.expected[member]),
          `${one.name}: ${EXPECTED_LABELS[member]} differs from the recording${got.error === undefined ? "" : ` (the call failed: ${got.error})`}`,
        );
    }
  }
}

const EXPECTED_LABELS: Readonly<Record<keyof ExpectedAnswer, string>> = {
  text: "the text",
  usage: "the usage",
  finish: "the finish reason",
  error: "the error",
};

function toExpected(events: readonly ModelEvent[]): ExpectedAnswer {
  const { usage } = collectResponse(events);
  const finish = events.find((event) => event.type === "finish");
  return {
    text: events.map((event) => (event.type === "delta" ? event.text : "")).join(""),
    usage: withoutUndefined(usage) as Record<string, number>,
    ...(finish && { finish: finish.reason }),
  };
}

/** Fields of a chat request, each with a unique value. */
const FIELD_PROBES: Readonly<
  Record<string, readonly [mark: string, with_: (request: ChatRequest) => ChatRequest]>
> = {
  max_tokens: ["777", (r) => ({ ...r, output: { ...r.output, maxTokens: 777 } })],
  stop: ["halt-4711", (r) => ({ ...r, output: { ...r.output, stop: ["halt-4711"] } })],
  temperature: ["0.4711", (r) => ({ ...r, sampling: { ...r.sampling, temperature: 0.4711 } })],
  top_p: ["0.4712", (r) => ({ ...r, sampling: { ...r.sampling, topP: 0.4712 } })],
  seed: ["4713", (r) => ({ ...r, sampling: { ...r.sampling, seed: 4713 } })],
};

/**
 * The outgoing request must contain the field's value, or the loss must be reported, or the request
 * must be rejected.
 */
export async function checkFieldsCarried(of: Provider, subject: ConformanceSubject): Promise<void> {
  for (const endpoint of nativeEndpoints(of).filter(({ operation }) => operation === "chat")) {
    const model = await pickModel(of, endpoint, subject);
    const sample = sampleRequest("chat", model, subject) as ChatRequest;
    const [good] = subjectRecordings(subject).filter(({ status }) => status < 300);
    for (const [field, [mark, changed]] of Object.entries(FIELD_PROBES)) {
      await using up = await startUpstream({ "*": good ? replayResponse(good) : { status: 503 } });
      const request = deepFreeze(changed(sample));
      const exchange = fakes.exchange({ request });
      const way = createProviderClient(up, endpoint, subject.credential);
      const call = fakes.call({ ...way, exchange, protocol: null, model });
      const problem = await collectEvents(endpoint, call, subject, request).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (up.requests.length === 0 || call.losses.length > 0) continue;
      if (["unsupported", "invalid"].includes(getFault(problem)?.kind ?? "")) continue;
      const left = up.requests.map(({ body, path }) => `${path} ${body}`).join("\n");
      assert.ok(
        left.includes(mark),
        `${field} is dropped without a warning: send it, or call call.lose("${field}", "dropped")`,
      );
    }
  }
}

/** How long a client waits for content that the upstream has already sent, in milliseconds. */
const CLIENT_TIMEOUT_MS = 10_000;

/**
 * Runs a complete gateway. The upstream delays its second part until the client has received the
 * first.
 */
export async function checkStreaming(of: Provider, subject: ConformanceSubject): Promise<void> {
  for (const endpoint of nativeEndpoints(of)) {
    if (endpoint.operation !== "chat") continue;
    const model = await pickModel(of, endpoint, subject);
    for (const one of subjectRecordings(subject).filter(({ status }) => status < 300)) {
      const after = await firstContentOffset(endpoint, model, subject, one);
      if (after === undefined) continue;
      await using up = await startUpstream({
        "*": replayResponse(one, { truncation: { after, how: "stall" } }),
      });
      await using at = await startGatewayFor(subject, endpoint, up.url);
      const text = await readFirstContent(at);
      subject.observed.push(...at.logs);
      assert.ok(
        /"content":"[^"]/.test(text),
        `${one.name}: the first part of the response must reach the client before the rest arrives`,
      );
      break;
    }
  }
}

/**
 * Returns the number of upstream bytes after which the endpoint can emit content. Undefined if
 * content is emitted only at the end.
 */
async function firstContentOffset(
  endpoint: AnyNativeEndpoint,
  model: string,
  subject: ConformanceSubject,
  one: Recording,
): Promise<number | undefined> {
  const { length } = one.body;
  // A line-based reader has the complete line when the line ends.
  const ends = [...one.body.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  for (const after of ends.filter((at) => at < length)) {
    await using up = await startUpstream({
      "*": replayResponse(one, { framing: "chunked", truncation: { after, how: "close" } }),
    });
    const call = fakes.call({
      ...createProviderClient(up, endpoint, subject.credential),
      protocol: null,
      model,
    });
    const events: ModelEvent[] = [];
    const request = sampleRequest(endpoint.operation, model, subject) as never;
    const reading = (async () => {
      for await (const event of endpoint.run(
        request,
        call,
        deepFreeze(subject.credential) as never,
      ))
        events.push(event);
    })();
    await settlesWithin(reading, CLIENT_TIMEOUT_MS / 2);
    if (events.some(({ type }) => type === "finish")) return undefined;
    if (events.some(({ type }) => type === "delta" || type === "media")) return after;
  }
  // The endpoint emits nothing until the end. The recording is then truncated in the middle, where
  // the endpoint should have emitted content.
  return ends.length > 2 ? ends[Math.floor(ends.length / 2)] : undefined;
}

function startGatewayFor(
  subject: ConformanceSubject,
  endpoint: AnyNativeEndpoint,
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
    setup: () => ({
      endpoints: [
        Object.assign(Object.create(endpoint) as AnyNativeEndpoint, {
          ...endpoint,
          base: `${url}${new URL(endpoint.base ?? url).pathname}`,
          servesModel: () => true,
        }) as never,
      ],
      listModels: async () => [{ model: "model", operation: endpoint.operation }],
    }),
  });
  const more = fields === undefined ? "" : `, with: ${JSON.stringify(fields)}`;
  return startTestGateway({
    plugins: { judged },
    env,
    yaml: `frontends: [chat-completions]\nretries: { per_target: 1, total: 1 }\nproviders: { p: { use: judged${more} } }`,
  });
}

/** Returns the text that a streamed chat receives until its first token or the client's timeout. */
async function readFirstContent(at: TestGateway): Promise<string> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), CLIENT_TIMEOUT_MS);
  let text = "";
  try {
    const res = await fetch(`${at.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "p/model",
        stream: true,
        messages: [{ role: "user", content: "Hello" }],
      }),
      signal: stop.signal,
    });
    const reader = res.body!.getReader();
    while (!/"content":"[^"]/.test(text)) {
      const { done, value } = await reader.read();
      if (done) break;
      text += Buffer.from(value).toString();
    }
    return text;
  } catch (error) {
    if (stop.signal.aborted) return text;
    throw error;
  } finally {
    clearTimeout(late);
    stop.abort();
  }
}
