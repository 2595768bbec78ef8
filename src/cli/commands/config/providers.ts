import type { TestCallResult } from "../../../admin/commands/test-calls.ts";
import type { ProviderHealth, ProvidersHealth } from "../../../admin/commands/provider-commands.ts";
import { COMMAND_SPECS } from "../../../admin/schema/command-specs.ts";
import { callControl } from "../../../admin/socket/control-client.ts";
import type { JsonObject } from "../../../model/values.ts";
import { plural } from "../../../lib/text.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  createCommandGroup,
  type Options,
  type Subcommand,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { findStateDir } from "../../support/load-config.ts";
import { formatCooldown } from "../../format/cooldown-output.ts";
import { alignColumns, formatTime, paint, print, printJson } from "../../format/terminal.ts";

const PROVIDER_OPTIONS: Options = {
  credential: { placeholder: "name", description: "Use only this credential" },
  ...GATEWAY_OPTIONS,
};

const subcommands: Readonly<Record<string, Subcommand>> = {
  list: {
    usage: "providers list [options]",
    summary: COMMAND_SPECS["providers.list"].summary,
    description:
      "Lists providers with their state in the last hour: calls, failures, time to " +
      "first token, cooldowns with their end, and the last failure. Needs a running " +
      "gateway.",
    options: GATEWAY_OPTIONS,
    examples: ["tollgate providers", "tollgate providers list --json"],
    run: list,
  },
  test: {
    usage: "providers test <provider> [options]",
    summary: COMMAND_SPECS["providers.test"].summary,
    description:
      "Sends one small request with each credential of a provider and reports the " +
      "result. The requests are billed, and the ledger records them under the key " +
      '"operator". Exits with 1 if one of them fails.',
    options: {
      model: {
        placeholder: "model",
        description: "Model to test (default: the cheapest chat model)",
      },
      ...PROVIDER_OPTIONS,
    },
    positionals: { least: 1, most: 1 },
    examples: ["tollgate providers test demo", "tollgate providers test openai --model gpt-5-mini"],
    run: test,
  },
  reset: {
    usage: "providers reset <provider> [options]",
    summary: COMMAND_SPECS["providers.reset"].summary,
    description:
      "Clears the cooldown of a provider, or of one of its credentials, whatever the " +
      "reason: retry-after, a rejected credential, or repeated failures. If the " +
      "provider fails again, the cooldown starts again.",
    options: PROVIDER_OPTIONS,
    positionals: { least: 1, most: 1 },
    examples: ["tollgate providers reset demo"],
    run: reset,
  },
};

export const command: CliCommand = createCommandGroup(
  "providers",
  "Lists, tests, and resets providers. The default command is list.",
  subcommands,
  "list",
);

const askGateway = async (given: CliInput, name: string, input: JsonObject = {}) =>
  callControl(await findStateDir(given), name, input);

async function list(given: CliInput): Promise<number> {
  const answer = (await askGateway(given, "providers.list")) as unknown as ProvidersHealth;
  if (given.json) printJson(answer);
  else print(formatHealth(answer));
  return EXIT_CODES.ok;
}

function formatHealth({ providers, unmountedProviders }: ProvidersHealth): string {
  const titles = ["provider", "models", "calls 1h", "failed", "first token p50 / p95", "list"];
  const rows = [
    titles.map((title) => paint("gray", title)),
    ...providers.map((one) => [
      one.name,
      String(one.modelCount),
      String(one.lastHour?.requests ?? 0),
      one.lastHour?.failed ? paint("red", String(one.lastHour.failed)) : "0",
      one.lastHour?.firstTokenMs
        ? `${one.lastHour.firstTokenMs.p50} / ${one.lastHour.firstTokenMs.p95} ms`
        : "",
      formatListState(one),
    ]),
    ...unmountedProviders.map(({ provider, reason }) => [
      paint("gray", provider),
      "",
      "",
      "",
      "",
      reason,
    ]),
  ];
  const lines = providers.flatMap((one) => [
    ...one.credentials.flatMap(({ name, cooldowns }) =>
      cooldowns.map((rest) =>
        paint(
          "yellow",
          `${one.name} ${name} ${rest.model ?? ""}`.trimEnd().concat(`: ${formatCooldown(rest)}`),
        ),
      ),
    ),
    ...one.recentFaults
      .slice(0, 1)
      .map(
        ({ kind, code, at, request }) =>
          `${one.name}: last failure ${formatTime(at)}: ${code ?? kind} (tollgate request ${request})`,
      ),
  ]);
  return [alignColumns(rows), ...lines].join("\n");
}

function formatListState({ credentials }: ProviderHealth): string {
  const lists = credentials.flatMap(({ modelList }) => (modelList ? [modelList] : []));
  const failed = lists.find(({ lastError }) => lastError);
  if (failed) return paint("red", failed.lastError!.message);
  const oldest = Math.min(...lists.flatMap(({ lastSuccessAt }) => lastSuccessAt ?? []));
  return Number.isFinite(oldest) ? `updated ${formatTime(oldest)}` : "";
}

async function test(given: CliInput): Promise<number> {
  const { tests } = (await askGateway(given, "providers.test", {
    provider: given.positionals[0]!,
    credential: given.getText("credential"),
    model: given.getText("model"),
  })) as unknown as { tests: readonly TestCallResult[] };
  if (given.json) printJson({ tests });
  else
    print(
      alignColumns(
        tests.map((one) => [
          one.credential,
          one.ok ? paint("green", "ok") : paint("red", "failed"),
          one.model ?? "",
          one.model === null ? "" : `${one.ms} ms`,
          one.model === null || one.usd === null ? "" : `$${one.usd}`,
          one.reason ?? "",
        ]),
      ),
    );
  return tests.every(({ ok }) => ok) ? EXIT_CODES.ok : EXIT_CODES.failed;
}

async function reset(given: CliInput): Promise<number> {
  const answer = (await askGateway(given, "providers.reset", {
    provider: given.positionals[0]!,
    credential: given.getText("credential"),
  })) as unknown as { reset: readonly string[] };
  if (given.json) printJson(answer);
  else print(`Reset ${plural(answer.reset.length, "credential")} of ${given.positionals[0]}.`);
  return EXIT_CODES.ok;
}
