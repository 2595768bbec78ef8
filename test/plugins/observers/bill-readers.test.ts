import { describe, expect, it } from "vitest";
import type { Context } from "tollgate/plugin";
import { readAnthropicBill } from "../../../plugins/observers/reconcile/anthropic.ts";
import type { BillApi } from "../../../plugins/observers/reconcile/bill-api.ts";
import type { BillLine } from "../../../plugins/observers/reconcile/bill-line.ts";
import { readExport, scaleOf, unitOf } from "../../../plugins/observers/reconcile/cloud-exports.ts";
import { readCsv } from "../../../plugins/observers/reconcile/csv.ts";
import { parseLineItem, readOpenaiBill } from "../../../plugins/observers/reconcile/openai.ts";

const DAY = "2026-11-27";
const FROM = Date.parse(DAY);
const period = { from: FROM, to: FROM + 86_400_000 };

/** Serves pages of JSON text by path, and records the requests. */
function fakeApi(
  pages: Readonly<Record<string, readonly string[]>>,
): BillApi & { readonly asked: URL[] } {
  const asked: URL[] = [];
  const fetch = (async (to: string | URL) => {
    const url = new URL(to);
    asked.push(url);
    const page = Number(url.searchParams.get("page") ?? 0);
    const data = pages[url.pathname] ?? [];
    const more = page + 1 < data.length;
    return new Response(
      `{"data":[${data[page] ?? ""}],"has_more":${more},"next_page":${more ? `"${page + 1}"` : null}}`,
    );
  }) as Context["fetch"];
  return { fetch, origin: "https://bill.example", headers: { authorization: "Bearer k" }, asked };
}
async function collect(lines: AsyncIterable<BillLine>): Promise<readonly BillLine[]> {
  const all: BillLine[] = [];
  for await (const line of lines) all.push(line);
  return all;
}
const brief = (lines: readonly BillLine[]) =>
  lines.map(({ model, unit, count, pico }) => [model, unit, count, pico]);

describe("OpenAI's bill", () => {
  const START = FROM / 1_000;

  it("has costs by line item and counts by usage, without floats, over several pages", async () => {
    const api = fakeApi({
      "/v1/organization/costs": [
        `{"start_time":${START},"results":[{"amount":{"value":0.1000000000000000055,"currency":"usd"},"line_item":"gpt-6-2026-05-01, input","project_id":"p"}]}`,
        `{"start_time":${START},"results":[{"amount":{"value":1.5e-7,"currency":"usd"},"line_item":"gpt-6-2026-05-01, output"},{"amount":{"value":0.01},"line_item":"web search tool calls"}]}`,
      ],
      "/v1/organization/usage/completions": [
        `{"start_time":${START},"results":[{"input_tokens":1000,"input_cached_tokens":800,"output_tokens":5,"num_model_requests":3,"model":"gpt-6-2026-05-01","project_id":"p","api_key_id":"k"}]}`,
      ],
    });
    const lines = await collect(readOpenaiBill(api, period));
    expect(brief(lines)).toEqual([
      ["gpt-6-2026-05-01", "input", undefined, 100_000_000_000n],
      ["gpt-6-2026-05-01", "output", undefined, 150_000n],
      [undefined, undefined, undefined, 10_000_000_000n],
      ["gpt-6-2026-05-01", "input", 200_000_000n, undefined],
      ["gpt-6-2026-05-01", "cache_read", 800_000_000n, undefined],
      ["gpt-6-2026-05-01", "output", 5_000_000n, undefined],
      ["gpt-6-2026-05-01", "calls", 3_000_000n, undefined],
    ]);
    expect(lines.every(({ day }) => day === DAY)).toBe(true);
    expect(api.asked.map((url) => url.searchParams.get("page"))).toEqual([null, "1", null]);
    expect(api.asked[0]!.searchParams.get("start_time")).toBe(String(START));
    expect(api.asked[0]!.searchParams.getAll("group_by[]")).toEqual(["project_id", "line_item"]);
  });

  it("has counts in the costs themselves, if they report a quantity", async () => {
    const api = fakeApi({
      "/v1/organization/costs": [
        `{"start_time":${START},"results":[{"amount":{"value":1,"currency":"usd"},"line_item":"gpt-6, cached input","quantity":12}]}`,
      ],
      "/v1/organization/usage/completions": [
        `{"start_time":${START},"results":[{"input_tokens":12,"input_cached_tokens":12,"output_tokens":0,"num_model_requests":1,"model":"gpt-6"}]}`,
      ],
    });
    const lines = await collect(readOpenaiBill(api, period));
    expect(brief(lines.filter(({ isShare }) => !isShare))).toEqual([
      ["gpt-6", "cache_read", 12_000_000n, 1_000_000_000_000n],
      ["gpt-6", "calls", 1_000_000n, undefined],
    ]);
    // The usage then only shows how the cost is divided among keys.
    expect(brief(lines.filter(({ isShare }) => isShare))).toEqual([
      ["gpt-6", "cache_read", 12_000_000n, undefined],
    ]);
  });

  it.each([
    ["gpt-5.5-2026-04-23, cached input", "gpt-5.5-2026-04-23", "cache_read"],
    ["priority | gpt-5.6-sol, output, long context", "gpt-5.6-sol", "output"],
    ["gpt-audio-mini-2025-12-15 audio, input", "gpt-audio-mini-2025-12-15", "audio_in"],
    ["gpt-image-2.5-flare image, output", "gpt-image-2.5-flare", "image_out"],
    ["whisper-1, audio", "whisper-1", undefined],
  ])("reads the line item %s", (text, model, unit) => {
    expect(parseLineItem(text)).toEqual({ model, unit });
  });

  it("has charges without a model, and rejects other currencies and failures", async () => {
    expect(parseLineItem("web search tool calls")).toBeUndefined();
    const api = fakeApi({
      "/v1/organization/costs": [
        `{"start_time":${START},"results":[{"amount":{"value":1,"currency":"eur"},"line_item":"gpt-6, input"}]}`,
      ],
    });
    await expect(collect(readOpenaiBill(api, period))).rejects.toThrow(/costs in eur/);
    const down = {
      ...api,
      fetch: (async () => new Response("no", { status: 401 })) as unknown as Context["fetch"],
    };
    await expect(collect(readOpenaiBill(down, period))).rejects.toThrow(/returned status 401/);
  });
});

it("Anthropic's bill has cents by type of token, and counts by usage", async () => {
  const api = fakeApi({
    "/v1/organizations/cost_report": [
      `{"starting_at":"${DAY}T00:00:00Z","results":[
        {"amount":"123.45","currency":"USD","cost_type":"tokens","model":"claude-opus-5","token_type":"uncached_input_tokens"},
        {"amount":"0.000001","currency":"USD","cost_type":"tokens","model":"claude-opus-5","token_type":"cache_creation.ephemeral_1h_input_tokens"},
        {"amount":"10","currency":"USD","cost_type":"web_search","description":"Web Search Usage"}]}`,
    ],
    "/v1/organizations/usage_report/messages": [
      `{"starting_at":"${DAY}T00:00:00Z","results":[{"model":"claude-opus-5","uncached_input_tokens":7,"cache_read_input_tokens":0,"cache_creation":{"ephemeral_5m_input_tokens":2,"ephemeral_1h_input_tokens":3},"output_tokens":4}]}`,
    ],
  });
  expect(brief(await collect(readAnthropicBill(api, period)))).toEqual([
    ["claude-opus-5", "input", undefined, 1_234_500_000_000n],
    ["claude-opus-5", "cache_write_1h", undefined, 10_000n],
    [undefined, undefined, undefined, 100_000_000_000n],
    ["claude-opus-5", "input", 7_000_000n, undefined],
    ["claude-opus-5", "cache_write_5m", 2_000_000n, undefined],
    ["claude-opus-5", "cache_write_1h", 3_000_000n, undefined],
    ["claude-opus-5", "output", 4_000_000n, undefined],
  ]);
});

describe("exports of clouds", () => {
  const read = (
    kind: "aws" | "google" | "azure",
    text: string,
    models: Record<string, string> = {},
  ) => [...readExport(kind, text, { file: "bill.csv", models: new Map(Object.entries(models)) })];

  it("AWS: marketplace models count in millions, other models in the unit of the price", () => {
    const lines = read(
      "aws",
      `line_item_product_code,product_product_name,line_item_usage_type,line_item_line_item_description,line_item_line_item_type,line_item_usage_start_date,line_item_usage_amount,pricing_unit,line_item_unblended_cost,line_item_currency_code
AmazonBedrock,Claude Sonnet 4.5 (Amazon Bedrock Edition),USE1-MP:USE1_CacheReadInputTokenCount-Units,"AWS Marketplace software usage|us-east-1|Million Cache Read Input Tokens",Usage,2026-11-27T00:00:00Z,0.5,Units,0.1500000000,USD
AmazonBedrock,Amazon Bedrock,USE1-NovaLite-output-tokens,$0.00024 per 1K output tokens,Usage,2026-11-27T00:00:00Z,2,1K tokens,0.00048,USD
AmazonBedrock,Amazon Bedrock,,Tax for product code AmazonBedrock,Tax,2026-11-27T00:00:00Z,1,,0.02,USD
AmazonS3,Amazon Simple Storage Service,TimedStorage,storage,Usage,2026-11-27T00:00:00Z,1,GB-Mo,9,USD
`,
    );
    expect(brief(lines)).toEqual([
      [
        "Claude Sonnet 4.5 (Amazon Bedrock Edition)",
        "cache_read",
        500_000_000_000n,
        150_000_000_000n,
      ],
      ["NovaLite", "output", 2_000_000_000n, 480_000_000n],
      [undefined, undefined, undefined, 20_000_000_000n],
    ]);
    expect(lines.map(({ id }) => id)).toEqual(["bill.csv:2", "bill.csv:3", "bill.csv:4"]);
  });

  it("Google: costs in another currency are converted at the export's own rate", () => {
    const lines = read(
      "google",
      `service.description,sku.description,usage_start_time,project.id,cost,currency,currency_conversion_rate,usage.amount,cost_type
Vertex AI,Gemini 2.5 Flash GA Text Output - Predictions,2026-11-27 05:00:00 UTC,p,0.5,EUR,0.5,1000,regular
Vertex AI,Tax,2026-11-27 05:00:00 UTC,p,0.1,EUR,0.5,0,tax
`,
    );
    expect(brief(lines)).toEqual([
      ["Gemini 2.5 Flash", "output", 1_000_000_000n, 1_000_000_000_000n],
      [undefined, undefined, undefined, 200_000_000_000n],
    ]);
  });

  it("Azure: meters are mapped to deployments", () => {
    const lines = read(
      "azure",
      `date,meterCategory,meterSubCategory,meterName,chargeType,quantity,unitOfMeasure,costInUsd,SubscriptionId
11/27/2026,Foundry Models,Azure OpenAI,gpt-4o-0806-Inp-glbl Tokens,Usage,1.5,1K,0.00375,s
11/27/2026,Foundry Models,Azure OpenAI,gpt-4o-0806-cached-Inp-glbl Tokens,Usage,2,1M,2.5,s
`,
      { "gpt-4o-0806": "chat" },
    );
    expect(brief(lines)).toEqual([
      ["chat", "input", 1_500_000_000n, 3_750_000_000n],
      ["chat", "cache_read", 2_000_000_000_000n, 2_500_000_000_000n],
    ]);
    expect(lines[0]!.day).toBe(DAY);
  });

  it("reads units and scales of texts", () => {
    expect(unitOf("USE1_OutputTokenCount")).toBe("output");
    expect(unitOf("Gemini Audio Input")).toBe("audio_in");
    expect(unitOf("cache write 1h")).toBe("cache_write_1h");
    expect(unitOf("Provisioned throughput")).toBeUndefined();
    expect([
      scaleOf("1K tokens"),
      scaleOf("1M"),
      scaleOf("1 Million"),
      scaleOf("Units"),
      scaleOf("100"),
    ]).toEqual([1_000n, 1_000_000n, 1_000_000n, 1n, 100n]);
  });

  it("reads CSV with quotes, line breaks, and empty fields", () => {
    const rows = [...readCsv('\uFEFFa,b\r\n"x ""y"",\n z",\r\n,2\n')];
    expect(rows.map((row) => [row.get("a"), row.get("b")])).toEqual([
      ['x "y",\n z', ""],
      ["", "2"],
    ]);
    expect(() => [...readCsv('a\n"x')]).toThrow(/does not end/);
  });
});
