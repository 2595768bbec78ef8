// Fields of one protocol in another one's body, and fields that a key or a privacy level excludes,
// in any position: none may reach an upstream. Each forbidden upstream call is a tripwire.
import type { Attack, Site } from "./target.ts";

/** Names that an outgoing request must not contain. */
const SPENDS = /"(?:n|best_of|num_return_sequences|candidateCount)"\s*:\s*(?!1\b)\d/;

const tripped = async (
  site: Site,
  path: string,
  body: object,
  headers: Record<string, string>,
  trips: (heard: string) => boolean,
): Promise<string[]> => {
  const before = site.up.count;
  const { status } = await site.post(path, JSON.stringify(body), { headers });
  const heard = site.up.heard.slice(site.up.heard.length - (site.up.count - before));
  return heard.some(({ body: leaves }) => trips(leaves))
    ? [
        `${path} ${JSON.stringify(body).slice(0, 200)} (${status}) left as ${heard[0]!.body.slice(0, 200)}`,
      ]
    : [];
};

const user = [{ role: "user", content: "a" }];

const money: Attack = {
  name: "fields that multiply an answer",
  async run(site) {
    const wrong: string[] = [];
    const fields = [
      { n: 128 },
      { best_of: 20 },
      { num_return_sequences: 9 },
      { generationConfig: { candidateCount: 8 } },
    ];
    for (const field of fields) {
      // A field that a target does not know has no effect on it.
      for (const model of "generationConfig" in field ? ["gemini/m"] : ["chat/m", "gemini/m"]) {
        wrong.push(
          ...(await tripped(
            site,
            "/v1/messages",
            { model, max_tokens: 9, messages: user, ...field },
            {},
            (b) => SPENDS.test(b),
          )),
        );
        wrong.push(
          ...(await tripped(
            site,
            "/v1/responses",
            { model, input: "a", store: false, ...field },
            {},
            (b) => SPENDS.test(b),
          )),
        );
      }
      if (!("n" in field))
        wrong.push(
          ...(await tripped(
            site,
            "/v1/chat/completions",
            { model: "gemini/m", messages: user, ...field },
            {},
            (b) => SPENDS.test(b),
          )),
        );
    }
    return wrong;
  },
};

const privacy: Attack = {
  name: "what keeps, under Service-ZDR",
  async run(site) {
    const asks: [string, object][] = [
      [
        "/v1/messages",
        { model: "messages/m", max_tokens: 9, messages: user, fallbacks: [{ model: "x" }] },
      ],
      ["/v1/chat/completions", { model: "chat/m", messages: user, plugins: [{ id: "web" }] }],
      ["/v1/chat/completions", { model: "chat/m", messages: user, models: ["x/y:online"] }],
      ["/v1/chat/completions", { model: "chat/m", messages: user, preset: "p" }],
      [
        "/v1/chat/completions",
        { model: "chat/m", messages: user, search_parameters: { mode: "on" } },
      ],
      [
        "/v1/responses",
        {
          model: "responses/m",
          store: false,
          input: [{ type: "additional_tools", tools: [{ type: "mcp", server_url: "http://x" }] }],
        },
      ],
      [
        "/v1/images/generations",
        { model: "gemini/m", prompt: "a", tools: [{ google_search: {} }] },
      ],
    ];
    const wrong: string[] = [];
    for (const level of ["required", "strict"])
      for (const [path, body] of asks)
        // No provider of these upstreams has zero data retention, so anything that arrives is a
        // tripwire.
        wrong.push(...(await tripped(site, path, body, { "service-zdr": level }, () => true)));
    return wrong;
  },
};

const models: Attack = {
  name: "models that a key may not use",
  async run(site) {
    const key = await site.key(`narrow ${Math.random()}`, { models: ["messages/m", "chat/m"] });
    const asks: [string, object][] = [
      [
        "/v1/messages",
        { model: "messages/m", max_tokens: 9, messages: user, fallbacks: [{ model: "forbidden" }] },
      ],
      [
        "/v1/messages",
        {
          model: "messages/m",
          max_tokens: 9,
          messages: user,
          tools: [{ type: "advisor_20260301", name: "advisor", model: "forbidden" }],
        },
      ],
      ["/v1/chat/completions", { model: "chat/m", messages: user, models: ["forbidden"] }],
    ];
    const wrong: string[] = [];
    for (const [path, body] of asks) {
      const before = site.up.count;
      await site.post(path, JSON.stringify(body), { key });
      const heard = site.up.heard.slice(site.up.heard.length - (site.up.count - before));
      if (heard.some((h) => h.body.includes("forbidden")))
        wrong.push(
          `${path} ${JSON.stringify(body).slice(0, 200)} reached a model that the key may not use`,
        );
    }
    return wrong;
  },
};

const doubled = (levels: number) => {
  const $defs: Record<string, object> = { l0: { type: "string" } };
  for (let i = 1; i <= levels; i++)
    $defs[`l${i}`] = { allOf: [{ $ref: `#/$defs/l${i - 1}` }, { $ref: `#/$defs/l${i - 1}` }] };
  return { type: "object", properties: { a: { $ref: `#/$defs/l${levels}` } }, $defs };
};
const chained = (n: number) => {
  const $defs: Record<string, object> = { l0: { type: "string" } };
  for (let i = 1; i <= n; i++) $defs[`l${i}`] = { $ref: `#/$defs/l${i - 1}` };
  return { type: "object", properties: { a: { $ref: `#/$defs/l${n}` } }, $defs };
};
const results = (n: number) => {
  const ids = Array.from({ length: n }, (_, i) => `c${i}`);
  return [
    {
      role: "assistant",
      tool_calls: ids.map((id) => ({
        id,
        type: "function",
        function: { name: "f", arguments: "{}" },
      })),
    },
    ...ids.toReversed().map((id) => ({ role: "tool", tool_call_id: id, content: "r" })),
  ];
};

const shapes: Attack = {
  name: "schemas and orders that grow",
  async run(site) {
    const wrong: string[] = [];
    const tool = (parameters: object) => ({
      model: "gemini/m",
      messages: user,
      tools: [{ type: "function", function: { name: "f", parameters } }],
    });
    const asks: [string, object][] = [
      ["allOf of two references, 40 deep", tool(doubled(40))],
      ["a chain of 20,000 references", tool(chained(20_000))],
      ["results in another order", { model: "gemini/m", messages: [...user, ...results(6_000)] }],
    ];
    for (const [name, body] of asks) {
      await site.gauge();
      const { status } = await site.post("/v1/chat/completions", JSON.stringify(body));
      const { held } = await site.gauge();
      site.worst(held);
      if (status === 0 || status === 500) wrong.push(`${name}: ${status}`);
      if (held > 250) wrong.push(`${name}: held the loop for ${held.toFixed(0)} ms`);
    }
    return wrong;
  },
};

export const attacks: readonly Attack[] = [money, privacy, models, shapes];
