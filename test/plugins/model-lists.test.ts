// Upstream responds to a model list request with anything: the error is the gateway's own text, and
// never the engine's.
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { builtin } from "../../plugins/index.ts";
import { createInMemoryModelLists } from "../../src/catalog/model-lists.ts";
import { createListRefresher } from "../../src/catalog/list-refresher.ts";
import { getFault, publicErrorText } from "../../src/model/error.ts";
import { trialCount } from "../kit/law-effort.ts";

/** V8's messages for programming errors. */
const ENGINE =
  /Cannot (read|set|convert|destructure)|is not (a function|iterable|defined|valid JSON)|reading '|Unexpected (token|end|non)|JSON at position|of undefined|of null|Invalid (array length|time value)/;

type Models = (line: object) => Promise<unknown>;

/** Every provider with a model list, with a minimum of options. */
const asking: [string, Models][] = [];
for (const [name, load] of Object.entries(builtin.provider)) {
  const { default: definition } = (await load()) as { default: any };
  const options: Record<string, unknown> = {};
  for (const [key, schema] of Object.entries<any>(definition.options?.properties ?? {}))
    if (schema.default !== undefined) options[key] = schema.default;
    else if (definition.options.required?.includes(key))
      options[key] = /url|endpoint|base/.test(key) ? "https://models.test/v1" : "x";
  const made = await definition.setup(options, { log: { warn() {}, info() {} } });
  if (made.listModels) asking.push([name, made.listModels.bind(made)]);
}

const answering = (body: string) => ({
  credential: { name: "default", fields: {} },
  fetch: async () => new Response(body, { status: 200 }),
  signal: new AbortController().signal,
});
const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => undefined,
    (e) => e,
  );

const name = fc.constantFrom(
  "data",
  "models",
  "id",
  "name",
  "object",
  "error",
  "has_more",
  "pricing",
  "limits",
);
const { value: json } = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    fc.constantFrom(null, true, 0, -1, 1e300, "", "x", "models/x", "1970", "gpt-6"),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(
      fc.oneof(
        name,
        fc.constantFrom(
          "supportedGenerationMethods",
          "capabilities",
          "created_at",
          "lifecycle",
          "top_provider",
          "type",
        ),
      ),
      tie("value"),
      { maxKeys: 6 },
    ),
  ),
}));

const rows = fc.array(json, { maxLength: 4 });
const body = fc.oneof(
  json.map((value) => JSON.stringify(value)),
  rows.map((data) => JSON.stringify({ data })),
  rows.map((models) => JSON.stringify({ models })),
  fc.constantFrom("", "<html>busy</html>", "{", "[1", "\u0000", '{"data":'),
);

it("some providers list their models", () => expect(asking.length).toBeGreaterThan(20));

describe.each(asking)("%s", (_, models) => {
  it("accepts a list, or reports what it expected and received", async () => {
    await fc.assert(
      fc.asyncProperty(body, async (text) => {
        const error = await caught(models(answering(text)));
        if (error === undefined) return;
        expect(getFault(error)?.message ?? `engine: ${String(error)}`).toMatch(
          /^The response is not a model list: expected .*, received .*\.$/,
        );
      }),
      { numRuns: trialCount(60) },
    );
  });

  it.each([
    ['{"object":"error"}', 'received {"object"}'],
    ['"busy"', "received a text"],
    ["<html>", "received no JSON"],
    ["", "received nothing"],
    ["null", "received null"],
  ])("%s", async (text, came) => {
    const fault = getFault(await caught(models(answering(text))));
    expect([fault?.code, fault?.message]).toEqual([
      "models_unavailable",
      expect.stringContaining(came),
    ]);
  });
});

it("a plugin that fails on a response is named, also in status, with the engine's message separate", async () => {
  const told: [string | undefined, unknown][] = [];
  using refresh = createListRefresher(createInMemoryModelLists(), {
    onStatusChange: ({ lastError }, error) => void told.push([lastError?.message, error]),
  });
  const models = async () => (undefined as any).map((x: unknown) => x);
  refresh.follow([{ provider: "p", credential: "c", fetchModels: models }]);
  await refresh.refreshNow();
  const [status] = refresh.status();
  expect(status!.lastError!.message).not.toMatch(ENGINE);
  expect(told[0]![0]).toBe(status!.lastError!.message);
  expect(told[0]![1]).toBeInstanceOf(TypeError);
});

it("public error texts are the author's, never the engine's", () => {
  const broken: (() => unknown)[] = [
    () => (undefined as any).x,
    () => JSON.parse("{,"),
    () => (1 as any)(),
    () => [...(1 as any)],
    () => (1).toFixed(1_000),
    () => new Date(Number.NaN).toISOString(),
    () => decodeURIComponent("%"),
    () => BigInt("x"),
  ];
  for (const break_ of broken) {
    let error: unknown;
    try {
      break_();
    } catch (thrown) {
      error = thrown;
    }
    expect(publicErrorText(error, "ours"), String(error)).toBe("ours");
  }
  expect(publicErrorText(new Error("no such region"), "ours")).toBe("no such region");
  expect(publicErrorText("a text", "ours")).toBe("ours");
});
