// Compares the ledger with the bills of providers, on request and for each completed day. It only
// reads: corrections are written by `tollgate reconcile --adjust`.
import { defineObserver, fail, type Context, type Json, type Problem } from "tollgate/plugin";
import { basename } from "node:path";
import { readAnthropicBill } from "./reconcile/anthropic.ts";
import { dayOf, type BillLine } from "./reconcile/bill-line.ts";
import type { BillPeriod } from "./reconcile/bill-api.ts";
import { readExport, type CloudExport } from "./reconcile/cloud-exports.ts";
import { compareBill, type BillGroup, type Comparison } from "./reconcile/compare.ts";
import { readCalls } from "./reconcile/ledger-calls.ts";
import { readOpenaiBill } from "./reconcile/openai.ts";
import { formatUsd } from "./usd.ts";

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;

const APIS = {
  openai: {
    origin: "https://api.openai.com",
    headers: (key: string) => ({ authorization: `Bearer ${key}` }),
  },
  anthropic: {
    origin: "https://api.anthropic.com",
    headers: (key: string) => ({ "x-api-key": key, "anthropic-version": "2023-06-01" }),
  },
} as const;

interface BillSource {
  readonly from: "openai" | "anthropic" | CloudExport;
  readonly key?: string | undefined;
  readonly base_url?: string | undefined;
  readonly files?: readonly string[] | undefined;
  readonly models?: Readonly<Record<string, string>> | undefined;
  readonly credentials?: Readonly<Record<string, string>> | undefined;
}

export default defineObserver({
  api: 1,
  name: "reconcile",
  summary: "Compare the ledger with the bills of providers",
  stability: "experimental",
  unverified: ["aws", "google", "azure"],
  sends: "nowhere",
  options: {
    type: "object",
    additionalProperties: false,
    required: ["bills"],
    properties: {
      bills: {
        type: "object",
        minProperties: 1,
        description: "Bills by the name of the provider in gateway.yaml",
        additionalProperties: {
          type: "object",
          additionalProperties: false,
          required: ["from"],
          properties: {
            from: {
              enum: ["openai", "anthropic", "aws", "google", "azure"],
              description:
                "Source: the billing API of openai or anthropic, or cost exports of aws, google, or azure as CSV files",
            },
            key: {
              type: "string",
              minLength: 1,
              "x-secret": true,
              description: "Admin API key of the organization. Required for openai and anthropic",
            },
            base_url: {
              type: "string",
              pattern: "^https?://",
              "x-expects": "a URL such as https://api.openai.com",
              "x-origin": true,
              description: "Origin of the billing API. Default: the provider's own",
            },
            files: {
              type: "array",
              minItems: 1,
              items: { type: "string", minLength: 1, "x-path": true },
              description: "CSV files of a cost export. Required for aws, google, and azure",
            },
            models: {
              type: "object",
              additionalProperties: { type: "string", minLength: 1 },
              description: "Model names of the ledger by product, meter, or SKU names of the bill",
            },
            credentials: {
              type: "object",
              additionalProperties: { type: "string", minLength: 1 },
              description:
                "Credential names of the provider in gateway.yaml by the IDs that the bill has: " +
                "of API keys, projects, workspaces, or accounts. If set, the bill is also compared " +
                "by credential",
            },
          },
        },
      },
      daily: {
        type: "boolean",
        default: false,
        description:
          "Whether to compare each day automatically, two days later, and to report differences",
      },
      max_difference: {
        type: "integer",
        minimum: 0,
        maximum: 100_000,
        default: 1,
        description: "Largest daily difference that is not reported, in US dollars",
      },
    },
  },
  needs: {
    files: ({ bills }) => Object.values(bills).flatMap(({ files = [] }) => files),
  },
  *check({ bills }): Generator<Problem> {
    for (const [name, { from, key, files }] of Object.entries(bills)) {
      const path = `/bills/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
      const isApi = from === "openai" || from === "anthropic";
      if (isApi && key === undefined)
        yield {
          path,
          message: "has no key",
          hint: "set key to an admin API key of the organization",
        };
      if (!isApi && files === undefined)
        yield { path, message: "has no files", hint: "set files to the CSV files of the export" };
    }
  },
  setup({ bills, daily, max_difference: maxDifference }, ctx) {
    const sources = new Map<string, BillSource>(Object.entries(bills));
    const compare = async (provider: string, period: BillPeriod): Promise<Comparison> => {
      const source =
        sources.get(provider) ??
        fail(
          "not_found",
          `No bill is configured for "${provider}". Configured: ${[...sources.keys()].join(", ")}.`,
          {
            code: "no_such_bill",
          },
        );
      // A call that spans midnight is billed on the day on which it began or ended.
      const wider = {
        from: period.from - DAY_MS,
        to: Math.max(period.to, Math.min(period.to + DAY_MS, startOfDay(Date.now()) + DAY_MS)),
      };
      const [calls, lines] = [
        await readCalls(ctx.ledger, provider, wider),
        await readBill(source, wider, ctx),
      ];
      return compareBill(calls, lines, {
        credentials: new Map(Object.entries(source.credentials ?? {})),
        first: dayOf(period.from),
        last: dayOf(period.to - 1),
      });
    };
    if (daily)
      scheduleDaily(ctx, [...sources.keys()], BigInt(maxDifference) * 1_000_000_000n, compare);
    return {
      commands: {
        bills: {
          summary: "List the providers whose bills are configured",
          role: "viewer",
          writes: false,
          run: async () => ({ providers: [...sources.keys()] }),
        },
        compare: {
          summary: "Compare the ledger with the bill of a provider",
          role: "viewer",
          writes: false,
          input: {
            type: "object",
            additionalProperties: false,
            required: ["provider", "from", "to"],
            properties: {
              provider: {
                type: "string",
                minLength: 1,
                description: "Provider name in gateway.yaml",
              },
              from: { type: "string", format: "date", description: "First day, in UTC" },
              to: { type: "string", format: "date", description: "Last day, in UTC" },
            },
          },
          run: async (input) => {
            const { provider, from, to } = input as { provider: string; from: string; to: string };
            const period = { from: Date.parse(from), to: Date.parse(to) + DAY_MS };
            if (!(period.from < period.to))
              fail("invalid", "The period ends before it begins.", {
                code: "bad_input",
                param: "/to",
              });
            return toJson(await compare(provider, period));
          },
        },
      },
    };
  },
});

const startOfDay = (at: number): number => Math.floor(at / DAY_MS) * DAY_MS;

/**
 * Compares the day before yesterday once a day, because bills are complete only then. A comparison
 * that failed is repeated.
 */
function scheduleDaily(
  ctx: Pick<Context, "runEvery" | "log" | "reportEvent">,
  providers: readonly string[],
  maxNano: bigint,
  compare: (provider: string, period: BillPeriod) => Promise<Comparison>,
): void {
  const done = new Map<string, string>();
  const run = async (provider: string, to: number) => {
    const day = dayOf(to - DAY_MS);
    if (done.get(provider) === day) return;
    const { groups } = await compare(provider, { from: to - DAY_MS, to });
    done.set(provider, day);
    const nano = groups.reduce((sum, group) => sum + group.theirsNano - group.oursNano, 0n);
    const fields = { provider, day, differenceUsd: formatUsd(nano), causes: totalsOf(groups) };
    if ((nano < 0n ? -nano : nano) <= maxNano)
      return ctx.log.info(fields, "bill compared with ledger");
    ctx.log.warn(fields, "bill differs from ledger");
    ctx.reportEvent("bill_differs", fields);
  };
  ctx.runEvery(HOUR_MS, async () => {
    const to = startOfDay(Date.now() - DAY_MS);
    for (const provider of providers)
      await run(provider, to).catch((err: unknown) =>
        ctx.log.error({ err, provider }, "bill comparison failed"),
      );
  });
}

async function readBill(
  source: BillSource,
  period: BillPeriod,
  { fetch, readFile }: Pick<Context, "fetch" | "readFile">,
): Promise<readonly BillLine[]> {
  if (source.from === "openai" || source.from === "anthropic") {
    const { origin, headers } = APIS[source.from];
    const api = { fetch, origin: source.base_url ?? origin, headers: headers(source.key!) };
    const read = source.from === "openai" ? readOpenaiBill : readAnthropicBill;
    const lines: BillLine[] = [];
    for await (const line of read(api, period)) lines.push(line);
    return lines;
  }
  const [first, last] = [dayOf(period.from), dayOf(period.to - 1)];
  const models = new Map(Object.entries(source.models ?? {}));
  const lines: BillLine[] = [];
  for (const file of source.files!)
    for (const line of readExport(source.from, (await readFile(file)).toString("utf8"), {
      file: basename(file),
      models,
    }))
      if (line.day >= first && line.day <= last) lines.push(line);
  return lines;
}

/** Returns the differences in US dollars, by cause. */
function totalsOf(groups: readonly BillGroup[]): Record<string, string> {
  const nano = new Map<string, bigint>();
  for (const { differences } of groups)
    for (const each of differences) nano.set(each.cause, (nano.get(each.cause) ?? 0n) + each.nano);
  return Object.fromEntries([...nano].map(([cause, sum]) => [cause, formatUsd(sum)]));
}

/** Amounts are decimal US dollars, and counts are numbers. */
function toJson({ groups, corrections }: Comparison): Json {
  const sum = (of: (group: BillGroup) => bigint) =>
    formatUsd(groups.reduce((all, each) => all + of(each), 0n));
  const counts = (of: BillGroup["ours"]) =>
    Object.fromEntries(Object.entries(of).map(([unit, count]) => [unit, Number(count) / 1e6]));
  return {
    oursUsd: sum(({ oursNano }) => oursNano),
    theirsUsd: sum(({ theirsNano }) => theirsNano),
    differenceUsd: sum(({ oursNano, theirsNano }) => theirsNano - oursNano),
    causes: totalsOf(groups),
    groups: groups.map((group) => ({
      day: group.day,
      model: group.model ?? null,
      credential: group.credential ?? null,
      projects: group.projects,
      keys: group.keys,
      calls: group.calls,
      oursUsd: formatUsd(group.oursNano),
      theirsUsd: formatUsd(group.theirsNano),
      ours: counts(group.ours),
      theirs: counts(group.theirs),
      differences: group.differences.map(({ nano, ...difference }) => ({
        ...difference,
        usd: formatUsd(nano),
      })),
    })),
    corrections: corrections.map(({ attempt, nano, cause }) => ({
      attempt,
      usd: formatUsd(nano),
      cause,
    })),
  };
}
