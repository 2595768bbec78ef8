// Several pictures for one request: a model that draws makes one at a time, so it is asked as often as pictures are wanted.
import {
  fail,
  UNITS,
  type Call,
  type ImageRequest,
  type Media,
  type ModelEvent,
  type Usage,
} from "tollgate/plugin";
import { geminiImage } from "tollgate/protocols/gemini";

/** As many as one request of the images protocol may ask for. */
const MOST = 10;
const AT_ONCE = 4;

interface Drawn {
  media: readonly Media[];
  usage: Usage;
}

export async function* several(r: ImageRequest, call: Call): AsyncGenerator<ModelEvent> {
  if (r.n > MOST)
    fail("unsupported", `${call.model} makes at most ${MOST} images at a time.`, { param: "n" });
  for (const field in r.rest) call.lose(field, "dropped");
  const one = { ...r, n: 1, stream: false, rest: {} };
  const done: Drawn[] = [];
  const over = new AbortController();
  const signal = AbortSignal.any([call.signal, over.signal]);
  let left = r.n;
  let problem: { error: unknown } | undefined;
  const draw = async () => {
    while (left-- > 0 && !problem)
      try {
        done.push(await drawn(one, call, signal));
      } catch (error) {
        // Of a picture that is not to be had the others are no answer.
        problem ??= { error };
        over.abort();
      }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, r.n) }, draw));
  if (done.length > 0) yield { type: "start" };
  // What was made is billed, whatever became of the rest.
  if (problem && done.length > 0) yield { type: "usage", usage: sum(done) };
  if (problem) throw problem.error;
  const pictures = done.flatMap(({ media }) => media);
  for (const [index, media] of pictures.entries()) {
    yield { type: "open", index, block: { type: "image" } };
    yield { type: "media", index, media };
    yield { type: "close", index };
  }
  yield { type: "usage", usage: sum(done) };
  yield { type: "finish", reason: "stop" };
}

const client = geminiImage().client!;

async function drawn(r: ImageRequest, call: Call, signal: AbortSignal): Promise<Drawn> {
  const of = {
    op: "generate",
    name: "generate",
    model: call.model,
    info: call.info,
    stream: false,
    params: {},
    query: new URLSearchParams(),
    lose: (field: string, how: "dropped" | "approximated", code?: string) =>
      call.lose(field, how, code),
  } as const;
  const { generate } = client.paths;
  const path = typeof generate === "string" ? generate : generate(of);
  const answer = await call.fetch(path.replace(/^\//, ""), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(client.request(r, of)),
    signal,
  });
  const body = Buffer.from(await answer.arrayBuffer());
  const headers = Object.fromEntries(answer.headers);
  if (!answer.ok) {
    const { kind, message, ...more } = client.fault(answer.status, headers, body);
    return fail(kind, message, more);
  }
  const media: Media[] = [];
  let usage: Usage = {};
  client.whole(
    body,
    (event) => {
      if (event.type === "media" && !event.partial) media.push(event.media);
      if (event.type === "usage") usage = event.usage;
    },
    of,
    headers,
  );
  return { media, usage };
}

function sum(all: readonly Drawn[]): Usage {
  const total: { -readonly [U in keyof Usage]: Usage[U] } = {};
  for (const { usage } of all)
    for (const unit of UNITS)
      if (usage[unit] !== undefined) total[unit] = (total[unit] ?? 0) + usage[unit];
  return total;
}
