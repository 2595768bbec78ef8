import type { TestCallResult } from "../../../admin/commands/test-calls.ts";
import type { ProviderHealth, ProvidersHealth } from "../../../admin/commands/provider-commands.ts";
import { plural } from "../../../lib/text.ts";
import { type CliCommand, createCommandGroup, EXIT_CODES } from "../../support/command.ts";
import { gatewayCommand } from "../../support/gateway-command.ts";
import { formatCooldown } from "../../format/cooldown-output.ts";
import { alignColumns, formatTime, paint, print } from "../../format/terminal.ts";

export const command: CliCommand = createCommandGroup(
  "providers",
  "Lists, tests, and resets providers. The default command is list.",
  {
    list: gatewayCommand<ProvidersHealth>("providers.list", {
      print: (answer) => print(formatHealth(answer)),
    }),
    test: gatewayCommand<{ readonly tests: readonly TestCallResult[] }>("providers.test", {
      print: ({ tests }) => print(formatTests(tests)),
      exitCode: ({ tests }) => (tests.every(({ ok }) => ok) ? EXIT_CODES.ok : EXIT_CODES.failed),
    }),
    reset: gatewayCommand<{ readonly reset: readonly string[] }>("providers.reset", {
      print: (answer, given) =>
        print(`Reset ${plural(answer.reset.length, "credential")} of ${given.positionals[0]}.`),
    }),
  },
  "list",
);

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

const formatTests = (tests: readonly TestCallResult[]): string =>
  alignColumns(
    tests.map((one) => [
      one.credential,
      one.ok ? paint("green", "ok") : paint("red", "failed"),
      one.model ?? "",
      one.model === null ? "" : `${one.ms} ms`,
      one.model === null || one.usd === null ? "" : `$${one.usd}`,
      one.reason ?? "",
    ]),
  );
