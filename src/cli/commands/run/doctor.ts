import { startDryRun, type DryRun } from "../../../server/dry-run.ts";
import type { GatewayConfig, LocatedProblem } from "../../../config/gateway-config.ts";
import { sortByFileOrder } from "../../../config/problem-report.ts";
import { plural } from "../../../lib/text.ts";
import { wallClock } from "../../../lib/time/wall-clock.ts";
import {
  type CliCommand,
  CONFIG_OPTIONS,
  EXIT_CODES,
  type CliInput,
  STATE_OPTIONS,
} from "../../support/command.ts";
import { checkCertificates } from "../../doctor/certificates.ts";
import type { DoctorFinding } from "../../doctor/finding.ts";
import * as gateway from "../../doctor/gateway.ts";
import * as machine from "../../doctor/system.ts";
import * as network from "../../doctor/network.ts";
import {
  configFile,
  loadGatewayConfig,
  quietLog,
  findStateDir,
  version,
} from "../../support/load-config.ts";
import { alignColumns, paint, print, printJson } from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "doctor [options]",
  description:
    "Diagnoses problems with the installation. It checks versions, limits, the clock, the disk and its write latency, permissions, and the gateway's certificates (expiry, names, key). It also checks proxies, DNS, provider TLS, credentials, prices, data policies, and reachable ports. Each finding includes a fix. If a gateway is running, it sends " +
    "one small request with each credential. Otherwise it requests each provider's " +
    "model list. Exits with 1 if a finding is an error, and with 78 if gateway.yaml " +
    "has errors.",
  options: {
    ...CONFIG_OPTIONS,
    ...STATE_OPTIONS,
    offline: { description: "Skip checks that use the network: DNS, providers, and ports" },
    strict: { description: "Exit with 1 for warnings too" },
  },
  examples: ["tollgate doctor", "tollgate doctor --offline --json"],
  run,
};

async function run(given: CliInput): Promise<number> {
  const file = configFile(given);
  const loaded = await loadGatewayConfig(file);
  const found: DoctorFinding[] = [...machine.checkVersions(version)];
  const { config: read } = loaded;
  const rehearsed = read && (await startDryRun({ loaded, config: read, ...quietLog() }));
  const made = rehearsed && "problems" in rehearsed ? undefined : rehearsed;
  const more: readonly LocatedProblem[] =
    rehearsed && "problems" in rehearsed ? rehearsed.problems : (made?.warnings ?? []);
  const problems = sortByFileOrder([...loaded.problems, ...more], loaded.sources);
  found.push(...gateway.checkConfig(problems, file));
  if (read) {
    const config = { ...read, stateDir: await findStateDir(given) };
    found.push(...(await checkConfigured(config, made, given.has("offline"))));
  }
  await made?.[Symbol.asyncDispose]();
  if (given.json)
    printJson({ ok: !hasFailures(found, false), file: file ?? null, findings: found });
  else print(formatFindings(found));
  if (problems.some(({ severity }) => severity === "error")) return EXIT_CODES.config;
  return hasFailures(found, given.has("strict")) ? EXIT_CODES.failed : EXIT_CODES.ok;
}

async function checkConfigured(
  config: GatewayConfig,
  made: DryRun | undefined,
  offline: boolean,
): Promise<readonly DoctorFinding[]> {
  const { status, found } = await gateway.checkRunning(config.stateDir, version);
  const here = [
    ...(await machine.checkLimits(config)),
    ...(await machine.checkDisk(config.stateDir)),
    ...(await machine.checkPermissions(config)),
    ...(await checkCertificates(config, status !== undefined && !offline)),
    ...found,
  ];
  if (made)
    here.push(...(await gateway.checkPrices(config, made)), ...gateway.checkPolicies(config, made));
  if (offline || !made) return here;
  const { origins, skews } = await checkProviderOrigins(config, made);
  return [
    ...here,
    ...machine.checkClock(skews),
    ...(await network.checkProxies(config, process.env)),
    ...origins,
    ...(await gateway.checkCredentials(config, made, status !== undefined)),
    ...(await network.checkReachable(config, status !== undefined)),
  ];
}

/** Checks each origin of each provider once, and compares their clocks with this machine's. */
async function checkProviderOrigins(config: GatewayConfig, made: DryRun) {
  const bases = new Map<string, readonly [provider: string, base: URL]>();
  for (const { name, plugin } of made.providers.values())
    for (const { base } of plugin.endpoints) {
      const url = base === undefined ? null : URL.parse(base);
      if (url) bases.set(url.origin, [name, url]);
    }
  const all = [...bases.values()];
  const proxied = config.proxy !== undefined;
  const origins = await Promise.all(
    all.map(([name, base]) => network.checkOrigin(name, base, proxied)),
  );
  const skews = await Promise.all(all.map(([, base]) => measureClockSkew(base)));
  return { origins: origins.flat(), skews: skews.flatMap((skew) => skew ?? []) };
}

const WAIT_MS = 5_000;

/** Measures the clock skew. Every response has a `date` header, whatever its status is. */
async function measureClockSkew(base: URL): Promise<number | undefined> {
  if (base.protocol !== "https:") return undefined;
  try {
    const began = wallClock();
    const answer = await fetch(base.origin, {
      method: "HEAD",
      redirect: "manual",
      signal: AbortSignal.timeout(WAIT_MS),
    });
    const at = Date.parse(answer.headers.get("date") ?? "");
    return Number.isNaN(at) ? undefined : at - (began + wallClock()) / 2;
  } catch {
    return undefined;
  }
}

const hasFailures = (found: readonly DoctorFinding[], strict: boolean): boolean =>
  found.some(({ level }) => level === "error" || (strict && level === "warning"));

const LEVEL_COLORS = { ok: "green", note: "gray", warning: "yellow", error: "red" } as const;
const LEVEL_LABELS = { ok: "ok", note: "note", warning: "warning", error: "error" } as const;

function formatFindings(found: readonly DoctorFinding[]): string {
  const rows = found.flatMap(({ level, message: text, action }) => [
    [paint(LEVEL_COLORS[level], LEVEL_LABELS[level]), text],
    ...(action === undefined ? [] : [["", paint("gray", `→ ${action}`)]]),
  ]);
  const counts = (["error", "warning"] as const)
    .map((level) => [found.filter((each) => each.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => plural(count, level));
  return `${alignColumns(rows)}\n\n${counts.length === 0 ? "Nothing is wrong here." : counts.join(", ")}`;
}
