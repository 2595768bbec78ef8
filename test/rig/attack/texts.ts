// One text at the size limit, in every place of a text or a name, with the worst characters for
// each parser. The cost of a request is limited, whether it is served or rejected.
import type { JsonObject } from "tollgate/plugin";
import {
  ALPHABETS,
  BEGINNINGS,
  stringsIn,
  wordsOf,
  type Place,
} from "../../protocols/linear/places.ts";
import { bodies } from "../../protocols/linear/requests.ts";
import { TRIES } from "./bodies.ts";
import type { Attack, Site } from "./target.ts";

const BYTES = 31_000_000;
/** CPU time for one request. */
const MOST_MS = 250;

const CLIENTS: Readonly<Record<string, { path: string; least: JsonObject }>> = {
  "chat-completions": {
    path: "/v1/chat/completions",
    least: { messages: [{ role: "user", content: "a" }] },
  },
  messages: {
    path: "/v1/messages",
    least: { max_tokens: 9, messages: [{ role: "user", content: "a" }] },
  },
  responses: { path: "/v1/responses", least: { store: false, input: "a" } },
  gemini: {
    path: "/v1beta/models/gemini%2Fm:generateContent",
    least: { contents: [{ role: "user", parts: [{ text: "a" }] }] },
  },
};
const UPSTREAMS = ["chat/m", "messages/m", "gemini/m"];

const filled = (beginning: string, alphabet: string): string =>
  beginning +
  alphabet.repeat(Math.floor(BYTES / Buffer.byteLength(JSON.stringify(alphabet).slice(1, -1))));

interface Vector {
  readonly name: string;
  readonly path: string;
  readonly body: string;
}

/** Cases that once stopped the gateway, or that are most expensive. */
function* known(): Generator<Vector> {
  for (const [name, { path, least }] of Object.entries(CLIENTS)) {
    const of = (what: string, more: object): Vector => ({
      name: `${name}: ${what}`,
      path,
      body: JSON.stringify({ model: "gemini/m", ...least, ...more }),
    });
    const file = filled("https://a.googleapis.com/", "\u00e9");
    yield of("an address at Google of 31 MB", { x_any: { file_uri: file } });
    yield of("a name of 30 MB", { [filled("", "_a")]: 1 });
    yield of("a tool whose member has a name of 30 MB", { tools: [{ [filled("", "A_a")]: {} }] });
    const names = Array.from({ length: 45_000 }, (_, i) => [`${i}${"_a".repeat(120)}`, 1]);
    yield of("names as long and as many as may be", { x_any: Object.fromEntries(names) });
    yield of("a tool of names as many as may be", { tools: [Object.fromEntries(names)] });
  }
}

/** A random place with one random character. */
function drawn(site: Site, places: ReadonlyMap<string, readonly Place[]>): Vector {
  const { chance } = site;
  const [name, all] = chance.one([...places]);
  const place = chance.one(all);
  const [beginning, alphabet] = [chance.one(BEGINNINGS), chance.one(ALPHABETS)];
  const model = chance.one(UPSTREAMS);
  return {
    name: `${name} to ${model}, ${place.at}: ${beginning}${JSON.stringify(alphabet)}`,
    path: CLIENTS[name]!.path,
    body: JSON.stringify({ ...place.body(filled(beginning, alphabet)), model }),
  };
}

/** A request above the limit is sent again, as in `bodiesAttack`. */
async function cost(
  site: Site,
  { path, body }: Vector,
): Promise<{ status: number; spent: number }> {
  let [least, status] = [Infinity, 0];
  for (let tries = TRIES; tries > 0 && least > MOST_MS; tries--) {
    const before = await site.gauge();
    ({ status } = await site.post(path, body));
    const { spent, busy } = await site.gauge();
    least = Math.min(least, spent / Math.min(before.busy, busy));
  }
  return { status, spent: least };
}

export const textsAttack = (times: number): Attack => ({
  name: "one text at the limit, anywhere",
  async run(site) {
    const wrong: string[] = [];
    const places = new Map(
      Object.entries(CLIENTS).map(([name, { least }]) => [
        name,
        [
          ...stringsIn([least, ...Object.values(bodies[name]!).map((made) => made(2))]),
          ...wordsOf(least),
        ],
      ]),
    );
    const judge = async (vector: Vector) => {
      const { status, spent } = await cost(site, vector);
      if (status === 0 || status === 500) wrong.push(`${vector.name}: ${status}`);
      if (spent > MOST_MS)
        wrong.push(`${vector.name}: held the loop for ${spent.toFixed(0)} ms in all`);
    };
    for (const vector of known()) await judge(vector);
    for (let i = 0; i < times; i++) await judge(drawn(site, places));
    return wrong;
  },
});

/** Minimal requests that are rejected: each has a proportional cost. */
export const bombsAttack: Attack = {
  name: "schemas that spell more than they are",
  async run(site) {
    const $defs: Record<string, object> = { l0: { type: "string" } };
    for (let i = 1; i <= 22; i++)
      $defs[`l${i}`] = {
        type: "object",
        properties: { a: { $ref: `#/$defs/l${i - 1}` }, b: { $ref: `#/$defs/l${i - 1}` } },
      };
    const parameters = { type: "object", properties: { a: { $ref: "#/$defs/l22" } }, $defs };
    const body = JSON.stringify({
      model: "gemini/m",
      messages: [{ role: "user", content: "a" }],
      tools: [{ type: "function", function: { name: "f", parameters } }],
    });
    await site.gauge();
    const times = 20;
    for (let i = 0; i < times; i++) await site.post("/v1/chat/completions", body);
    const each = (await site.gauge()).spent / times;
    return each > 25
      ? [`a schema of ${body.length} bytes held the loop for ${each.toFixed(0)} ms`]
      : [];
  },
};

/** Names with terminal control characters: none is stored. */
export const namesAttack: Attack = {
  name: "names that steer a terminal",
  async run(site) {
    const wrong: string[] = [];
    for (const code of [0, 7, 8, 10, 13, 27, 127, 155, 0x61c, 0x200f, 0x202e, 0x2028, 0x2066]) {
      const name = `a${String.fromCharCode(code)}b`;
      const made = await site.key(name).catch(() => undefined);
      if (made !== undefined) wrong.push(`a key was named ${JSON.stringify(name)}`);
    }
    return wrong;
  },
};
