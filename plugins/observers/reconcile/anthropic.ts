// Reads the cost report and the usage report of an Anthropic organization. Costs are decimal cents
// per day, workspace, and description, with the model and the type of token. Counts are in the usage
// report only.
import type { Unit } from "tollgate/plugin";
import { dayOf, parseCount, parseDecimal, type BillLine } from "./bill-line.ts";
import { readPages, type BillApi, type BillPeriod } from "./bill-api.ts";

interface CostResult {
  /** Cents, as a decimal string. */
  readonly amount: string;
  readonly currency?: string;
  readonly cost_type?: string | null;
  readonly description?: string | null;
  readonly model?: string | null;
  readonly token_type?: string | null;
  readonly workspace_id?: string | null;
}
interface Digits {
  readonly digits: string;
}
interface UsageResult {
  readonly uncached_input_tokens?: Digits;
  readonly cache_read_input_tokens?: Digits;
  readonly cache_creation?: {
    readonly ephemeral_5m_input_tokens?: Digits;
    readonly ephemeral_1h_input_tokens?: Digits;
  } | null;
  readonly output_tokens?: Digits;
  readonly server_tool_use?: { readonly web_search_requests?: Digits } | null;
  readonly model?: string | null;
  readonly api_key_id?: string | null;
  readonly workspace_id?: string | null;
}
interface Bucket<R> {
  readonly starting_at: string;
  readonly results: readonly R[];
}

/** A cent is 10^10 pico-dollars. */
const PICO_PLACES_OF_CENT = 10;

const TOKEN_UNITS: Readonly<Record<string, Unit>> = {
  uncached_input_tokens: "input",
  cache_read_input_tokens: "cache_read",
  "cache_creation.ephemeral_5m_input_tokens": "cache_write_5m",
  "cache_creation.ephemeral_1h_input_tokens": "cache_write_1h",
  output_tokens: "output",
};

export async function* readAnthropicBill(
  api: BillApi,
  period: BillPeriod,
): AsyncGenerator<BillLine, void> {
  const range = {
    starting_at: new Date(period.from).toISOString(),
    ending_at: new Date(period.to).toISOString(),
    bucket_width: "1d",
    limit: "31",
  };
  const costs = { ...range, "group_by[]": ["workspace_id", "description"] };
  for await (const bucket of readPages<Bucket<CostResult>>(
    api,
    "/v1/organizations/cost_report",
    costs,
  )) {
    const day = dayOf(Date.parse(bucket.starting_at));
    for (const [i, result] of bucket.results.entries()) {
      if ((result.currency ?? "USD") !== "USD")
        throw new Error(
          `Anthropic reports costs in ${result.currency}, and only US dollars are supported`,
        );
      yield {
        id: `cost_report ${day} ${i + 1}`,
        day,
        model: result.model ?? undefined,
        project: result.workspace_id ?? undefined,
        key: undefined,
        unit: TOKEN_UNITS[result.token_type ?? ""],
        count: undefined,
        pico: parseDecimal(result.amount, PICO_PLACES_OF_CENT),
        description: result.description ?? result.cost_type ?? "",
      };
    }
  }
  const usage = { ...range, "group_by[]": ["workspace_id", "api_key_id", "model"] };
  for await (const bucket of readPages<Bucket<UsageResult>>(
    api,
    "/v1/organizations/usage_report/messages",
    usage,
  )) {
    const day = dayOf(Date.parse(bucket.starting_at));
    for (const [i, result] of bucket.results.entries())
      for (const [unit, count] of countsOf(result))
        if (count > 0n && result.model != null)
          yield {
            id: `usage_report ${day} ${i + 1}`,
            day,
            model: result.model,
            project: result.workspace_id ?? undefined,
            key: result.api_key_id ?? undefined,
            unit,
            count,
            pico: undefined,
            description: "usage",
          };
  }
}

function countsOf(of: UsageResult): readonly (readonly [Unit, bigint])[] {
  const count = (digits: Digits | undefined) => (digits ? parseCount(digits.digits) : 0n);
  return [
    ["input", count(of.uncached_input_tokens)],
    ["cache_read", count(of.cache_read_input_tokens)],
    ["cache_write_5m", count(of.cache_creation?.ephemeral_5m_input_tokens)],
    ["cache_write_1h", count(of.cache_creation?.ephemeral_1h_input_tokens)],
    ["output", count(of.output_tokens)],
  ];
}
