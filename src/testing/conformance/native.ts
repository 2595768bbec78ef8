// Laws of native endpoints that need more than the grammar: they say what a person read in a recording, they lose no field of a request
// in silence, and their client has the first part of an answer before upstream sends the second.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { faultOf } from "../../model/error.ts";
import type { ModelEvent } from "../../model/event.ts";
import { fold } from "../../model/fold.ts";
import type { ChatRequest } from "../../model/request.ts";
import { defineProvider } from "../../plugin/define.ts";
import type { Provider } from "../../plugin/provider.ts";
import type { apiKey, None } from "../../plugin/schema.ts";
import { plain } from "../codec.ts";
import { freeze } from "../freeze.ts";
import { gateway, type TestGateway } from "../gateway.ts";
import * as pretend from "../pretend.ts";
import { recordings, replay, type ExpectedAnswer, type Recording } from "../recording.ts";
import { upstream } from "../upstream.ts";
import { line, settling } from "./line.ts";
import { credentialOf } from "./mounted.ts";
import { notChecked, type Subject } from "./subject.ts";
import { drained, isWire, modelOf, requestOf, run, type Native } from "./work.ts";

const natives = ({ endpoints }: Provider): Native[] =>
  endpoints.filter((endpoint): endpoint is Native => !isWire(endpoint));

function recordedOf({ recordings: folder }: Subject): readonly Recording[] {
  const own = folder && existsSync(join(folder, "native")) ? join(folder, "native") : folder;
  return own ? recordings(own) : [];
}

/** What came out of a recording is what a person wrote down beside it. */
export async function stated(of: Provider, subject: Subject): Promise<void> {
  for (const endpoint of natives(of)) {
    const model = await modelOf(of, endpoint, subject);
    for (const one of recordedOf(subject)) {
      if (one.expected === undefined) {
        if (one.events !== undefined || one.status >= 400) continue;
        throw new Error(
          `${one.name}: ${notChecked("What it counts, and how it ends,", "native")} ` +
            'Beside upstream.http, expected.json says what a person reads in it: { "text": "Hello", "usage": { "input": 12, "output": 2 }, "finish": "stop" }, or { "error": "overloaded" }.',
        );
      }
      await using up = await upstream({ "*": replay(one) });
      const got = await run(endpoint, model, subject, up).then(
        (events) => answerOf(events),
        (error: unknown): ExpectedAnswer => ({ error: faultOf(error)?.kind ?? String(error) }),
      );
      const wanted = Object.keys(one.expected) as (keyof ExpectedAnswer)[];
      for (const member of one.expected.error === undefined ? wanted : (["error"] as const))
        assert.deepEqual(
          plain(got[member]),
          plain(one.expected[member]),
          `${one.name}: ${WORDS[member]} is not what was recorded${got.error === undefined ? "" : ` (it failed: ${got.error})`}`,
        );
    }
  }
}

const WORDS: Readonly<Record<keyof ExpectedAnswer, string>> = {
  text: "the text",
  usage: "what is counted",
  finish: "the reason for the end",
  error: "the error",
};

function answerOf(events: readonly ModelEvent[]): ExpectedAnswer {
  const { usage } = fold(events);
  const finish = events.find((event) => event.type === "finish");
  return {
    text: events.map((event) => (event.type === "delta" ? event.text : "")).join(""),
    usage: plain(usage) as Record<string, number>,
    ...(finish && { finish: finish.reason }),
  };
}

/** Fields of a chat, each with a value that is like nothing else. */
const FIELDS: Readonly<
  Record<string, readonly [mark: string, with_: (request: ChatRequest) => ChatRequest]>
> = {
  max_tokens: ["777", (r) => ({ ...r, output: { ...r.output, maxTokens: 777 } })],
  stop: ["halt-4711", (r) => ({ ...r, output: { ...r.output, stop: ["halt-4711"] } })],
  temperature: ["0.4711", (r) => ({ ...r, sampling: { ...r.sampling, temperature: 0.4711 } })],
  top_p: ["0.4712", (r) => ({ ...r, sampling: { ...r.sampling, topP: 0.4712 } })],
  seed: ["4713", (r) => ({ ...r, sampling: { ...r.sampling, seed: 4713 } })],
};

/** What leaves has the field's value, or the call is told that the field is lost, or the request is refused. */
export async function carried(of: Provider, subject: Subject): Promise<void> {
  for (const endpoint of natives(of).filter(({ kind }) => kind === "chat")) {
    const model = await modelOf(of, endpoint, subject);
    const sample = requestOf("chat", model, subject) as ChatRequest;
    const [good] = recordedOf(subject).filter(({ status }) => status < 300);
    for (const [field, [mark, changed]] of Object.entries(FIELDS)) {
      await using up = await upstream({ "*": good ? replay(good) : { status: 503 } });
      const request = freeze(changed(sample));
      const exchange = pretend.exchange({ request });
      const way = line(up, endpoint, subject.credential);
      const call = pretend.call({ ...way, exchange, protocol: null, model });
      const problem = await drained(endpoint, call, subject, request).then(
        () => undefined,
        (error: unknown) => error,
      );
      if (up.requests.length === 0 || call.losses.length > 0) continue;
      if (["unsupported", "invalid"].includes(faultOf(problem)?.kind ?? "")) continue;
      const left = up.requests.map(({ body, path }) => `${path} ${body}`).join("\n");
      assert.ok(
        left.includes(mark),
        `${field} is left out in silence: send it, or call.lose("${field}", "dropped")`,
      );
    }
  }
}

/** How long a client waits here for what upstream has said already. */
const PATIENCE_MS = 10_000;

/** A whole gateway: upstream holds its second part until the client has the first. */
export async function flowing(of: Provider, subject: Subject): Promise<void> {
  for (const endpoint of natives(of)) {
    if (endpoint.kind !== "chat") continue;
    const model = await modelOf(of, endpoint, subject);
    for (const one of recordedOf(subject).filter(({ status }) => status < 300)) {
      const after = await contentAt(endpoint, model, subject, one);
      if (after === undefined) continue;
      await using up = await upstream({ "*": replay(one, { cut: { after, how: "stall" } }) });
      await using at = await behind(subject, endpoint, up.url);
      const text = await beginning(at);
      subject.heard.push(...at.logs);
      assert.ok(
        /"content":"[^"]/.test(text),
        `${one.name}: what upstream has said does not reach the client before the rest`,
      );
      break;
    }
  }
}

/** After how many bytes of upstream's the endpoint may have something to say; undefined where that is only at its end. */
async function contentAt(
  endpoint: Native,
  model: string,
  subject: Subject,
  one: Recording,
): Promise<number | undefined> {
  const { length } = one.body;
  // Where a line ends, a reader of lines has all of it.
  const ends = [...one.body.entries()].flatMap(([at, byte]) => (byte === 10 ? [at + 1] : []));
  for (const after of ends.filter((at) => at < length)) {
    await using up = await upstream({
      "*": replay(one, { framing: "chunked", cut: { after, how: "close" } }),
    });
    const call = pretend.call({ ...line(up, endpoint, subject.credential), protocol: null, model });
    const said: ModelEvent[] = [];
    const request = requestOf(endpoint.kind, model, subject) as never;
    const reading = (async () => {
      for await (const event of endpoint.run(request, call, freeze(subject.credential) as never))
        said.push(event);
    })();
    await settling(reading, PATIENCE_MS / 2);
    if (said.some(({ type }) => type === "finish")) return undefined;
    if (said.some(({ type }) => type === "delta" || type === "media")) return after;
  }
  // It keeps everything to itself until the end: the place where the second line is over is where it should not.
  return ends.length > 2 ? ends[Math.floor(ends.length / 2)] : undefined;
}

function behind(subject: Subject, endpoint: Native, url: string): Promise<TestGateway> {
  const { fields, env } = credentialOf(subject);
  const judged = defineProvider<None, typeof apiKey>({
    api: 1,
    name: "judged",
    summary: "What is judged, asked of the kit",
    ...("credential" in subject.definition && {
      credential: subject.definition.credential as typeof apiKey,
    }),
    setup: () => ({
      endpoints: [
        Object.assign(Object.create(endpoint) as Native, {
          ...endpoint,
          base: `${url}${new URL(endpoint.base ?? url).pathname}`,
          serves: () => true,
        }) as never,
      ],
      models: async () => [{ model: "model", kind: endpoint.kind }],
    }),
  });
  const more = fields === undefined ? "" : `, with: ${JSON.stringify(fields)}`;
  return gateway({
    plugins: { judged },
    env,
    yaml: `frontends: [chat-completions]\nattempts: { target: 1, all: 1 }\nproviders: { p: { use: judged${more} } }`,
  });
}

/** What comes of a streamed chat until its first content, or until the client gives up. */
async function beginning(at: TestGateway): Promise<string> {
  const stop = new AbortController();
  const late = setTimeout(() => stop.abort(), PATIENCE_MS);
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
