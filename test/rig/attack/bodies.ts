// Bodies at the size limit, in the forms that are worst for each codec: none blocks the event loop.
import type { Attack, Site } from "./target.ts";

/** Clients do not notice less than this. */
export const HELD_MS = 100;
/** Number of repetitions of a request that exceeds its CPU limit. */
export const TRIES = 8;
const MAX = 32 * 1024 * 1024;

interface Frame {
  readonly path: string;
  /** Places a value where text is expected, as a list of parts or as a string. */
  around(model: string, content: string): string;
  readonly part: string;
}

const FRAMES: Readonly<Record<string, Frame>> = {
  "chat-completions": {
    path: "/v1/chat/completions",
    around: (model, content) =>
      `{"model":"${model}","messages":[{"role":"user","content":${content}}]}`,
    part: '{"type":"text","text":"a"}',
  },
  messages: {
    path: "/v1/messages",
    around: (model, content) =>
      `{"model":"${model}","max_tokens":9,"messages":[{"role":"user","content":${content}}]}`,
    part: '{"type":"text","text":"a"}',
  },
  responses: {
    path: "/v1/responses",
    around: (model, content) =>
      `{"model":"${model}","store":false,"input":[{"type":"message","role":"user","content":${content}}]}`,
    part: '{"type":"input_text","text":"a"}',
  },
};

const filled = (piece: string, bytes = MAX - 1_000) =>
  piece.repeat(Math.floor(bytes / Buffer.byteLength(piece)));
const listed = (piece: string, times: number) => `[${Array(times).fill(piece).join(",")}]`;
const members = (n: number) => `{${Array.from({ length: n }, (_, i) => `"k${i}":1`).join(",")}}`;
const deep = (n: number) => `${'{"a":['.repeat(n)}${"]}".repeat(n)}`;

/** Value of the content; `part` is the protocol's own form. */
export const SHAPES: Readonly<Record<string, (part: string) => string>> = {
  "one text": () => `"${filled("words ")}"`,
  "one text beyond ASCII": () => `"${filled("中文é😀")}"`,
  "newlines up to their bound": () => `"${filled("\\n", 4_000_000)}${filled("a", 25_000_000)}"`,
  "nothing but newlines": () => `"${filled("\\n")}"`,
  "nothing but quotes": () => `"${filled('\\"')}"`,
  "an escape now and then": () => `"${filled(`${"x".repeat(40)}\\"`)}"`,
  "nothing but escaped letters": () => `"${filled("\\u4e2d")}"`,
  "nothing but backslashes": () => `"${filled("\\\\")}"`,
  blanks: () => `[${filled(" ")}]`,
  "one long number": () => filled("1"),
  "empty objects": () => listed("{}", 10_000_000),
  "empty objects, as many as may be": () => listed("{}", 49_000),
  "parts, as many as may be": (part) => listed(part, 48_000),
  "parts with more in them": (part) =>
    listed(part.replace("}", ',"cache_control":{"type":"ephemeral"}}'), 28_000),
  "long parts, as many as may be": (part) =>
    listed(part.replace('"a"', `"${"x".repeat(500)}"`), 48_000),
  "one wide object": () => `[${members(49_000)}]`,
  "wide objects": () => listed(members(1_000), 140),
  "one object wider than it may be": () => `[${members(2_000_000)}]`,
  deep: () => deep(30),
  "deeper than it may be": () => deep(3_000_000),
  "brackets alone": () => filled("["),
  "a key of a megabyte": (part) => `[${part.replace("}", `,"${"k".repeat(1_000_000)}":1}`)}]`,
  "a picture": () =>
    `[{"type":"image_url","image_url":{"url":"data:image/png;base64,${filled("iVBORw0KGgo", MAX - 10_000)}"}}]`,
};

const TOOLS = (n: number) =>
  listed(
    '{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}',
    n,
  );

function* bodies(): Generator<[name: string, path: string, body: string]> {
  for (const [protocol, { path, around, part }] of Object.entries(FRAMES))
    for (const upstream of ["chat/m", "messages/m", "gemini/m"])
      for (const [shape, make] of Object.entries(SHAPES))
        yield [`${protocol} to ${upstream}: ${shape}`, path, around(upstream, make(part))];
  for (const upstream of ["chat/m", "messages/m", "gemini/m"]) {
    const { path, around } = FRAMES["chat-completions"]!;
    yield [
      `tools to ${upstream}`,
      path,
      around(upstream, '"a"').replace("{", `{"tools":${TOOLS(4_000)},`),
    ];
    yield [
      `turns to ${upstream}`,
      path,
      `{"model":"${upstream}","messages":${listed('{"role":"user","content":"a"}', 48_000)}}`,
    ];
  }
  yield [
    "picture",
    "/v1/images/generations",
    `{"model":"chat/draw","prompt":"${filled("words ")}"}`,
  ];
}

/** Runs each alone. `every`: one in this many, for a short form. */
export const bodiesAttack = (every: number): Attack => ({
  name: "bodies at the limit",
  async run(site: Site) {
    const wrong: string[] = [];
    let n = site.chance.below(every);
    for (const [name, path, body] of bodies()) {
      if (n++ % every !== 0) continue;
      const { status, held } = await alone(site, path, body);
      if (status >= 500 && status !== 502 && status !== 503) wrong.push(`${name}: ${status}`);
      if (held > HELD_MS) wrong.push(`${name}: held the loop for ${held.toFixed(0)} ms`);
    }
    return wrong;
  },
});

/**
 * Other work on the machine also raises the CPU time of the same work, because caches and memory
 * are shared. So a body above the limit is sent again.
 */
async function alone(site: Site, path: string, body: string) {
  let least = Infinity;
  let status = 0;
  for (let tries = TRIES; tries > 0 && least > HELD_MS; tries--) {
    const before = await site.gauge();
    ({ status } = await site.post(path, body));
    const { held, busy } = await site.gauge();
    least = Math.min(least, held / Math.min(before.busy, busy));
  }
  site.worst(least);
  return { status, held: least };
}
