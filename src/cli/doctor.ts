import { rehearse, type Rehearsal } from "../gateway/rehearse.ts";
import type { GatewayConfig, Located } from "../config/types.ts";
import { inFileOrder } from "../config/report.ts";
import { plural } from "../lib/text.ts";
import { wallClock } from "../lib/wall-clock.ts";
import { type CliCommand, CONFIG, EXIT, type CliInput, STATE } from "./command.ts";
import { certificates } from "./doctor/certificates.ts";
import type { DoctorFinding } from "./doctor/finding.ts";
import * as gateway from "./doctor/gateway.ts";
import * as machine from "./doctor/machine.ts";
import * as network from "./doctor/network.ts";
import { configFile, load, quietLog, stateDirOf, version } from "./loading.ts";
import { columns, paint, say, sayJson } from "./terminal.ts";

export const command: CliCommand = {
  usage: "doctor [options]",
  about:
    "Looks at what could be wrong here: versions, limits, clock, the disk and how soon a write is durable, permissions, the gateway's own " +
    "certificates (when they end, which names they are for, whether the key fits), proxies, names, TLS of providers, each credential, " +
    "prices, policies, who reaches the port. Each finding says what to do. Exits with 1 when one is an " +
    "error, with 78 when gateway.yaml has errors. A gateway that runs makes one small call with each credential; where none does, " +
    "providers are asked what they have.",
  options: {
    ...CONFIG,
    ...STATE,
    offline: { about: "send nothing: no names, no providers, no ports" },
    strict: { about: "exit with 1 for warnings too" },
  },
  examples: ["tollgate doctor", "tollgate doctor --offline --json"],
  run,
};

async function run(given: CliInput): Promise<number> {
  const file = configFile(given);
  const loaded = await load(file);
  const found: DoctorFinding[] = [...machine.versions(version)];
  const { config: read } = loaded;
  const rehearsed = read && (await rehearse({ loaded, config: read, ...quietLog() }));
  const made = rehearsed && "problems" in rehearsed ? undefined : rehearsed;
  const more: readonly Located[] =
    rehearsed && "problems" in rehearsed ? rehearsed.problems : (made?.warnings ?? []);
  const problems = inFileOrder([...loaded.problems, ...more], loaded.sources);
  found.push(...gateway.config(problems, file));
  if (read) {
    const config = { ...read, stateDir: await stateDirOf(given) };
    found.push(...(await around(config, made, given.has("offline"))));
  }
  await made?.[Symbol.asyncDispose]();
  if (given.json) sayJson({ ok: !bad(found, false), file: file ?? null, findings: found });
  else say(inWords(found));
  if (problems.some(({ severity }) => severity === "error")) return EXIT.config;
  return bad(found, given.has("strict")) ? EXIT.failed : EXIT.fine;
}

async function around(
  config: GatewayConfig,
  made: Rehearsal | undefined,
  offline: boolean,
): Promise<readonly DoctorFinding[]> {
  const { status, found } = await gateway.running(config.stateDir, version);
  const here = [
    ...(await machine.limits(config)),
    ...(await machine.disk(config.stateDir)),
    ...(await machine.permissions(config)),
    ...(await certificates(config, status !== undefined && !offline)),
    ...found,
  ];
  if (made) here.push(...(await gateway.prices(config, made)), ...gateway.policies(config, made));
  if (offline || !made) return here;
  const { origins, skews } = await outward(config, made);
  return [
    ...here,
    ...machine.clock(skews),
    ...(await network.proxies(config, process.env)),
    ...origins,
    ...(await gateway.credentials(config, made, status !== undefined)),
    ...(await network.outside(config, status !== undefined)),
  ];
}

/** Each address of each provider once; and what time it is there. */
async function outward(config: GatewayConfig, made: Rehearsal) {
  const bases = new Map<string, readonly [provider: string, base: URL]>();
  for (const { name, provider } of made.providers.values())
    for (const { base } of provider.endpoints) {
      const url = base === undefined ? null : URL.parse(base);
      if (url) bases.set(url.origin, [name, url]);
    }
  const all = [...bases.values()];
  const proxied = config.proxy !== undefined;
  const origins = await Promise.all(all.map(([name, base]) => network.origin(name, base, proxied)));
  const skews = await Promise.all(all.map(([, base]) => skewOf(base)));
  return { origins: origins.flat(), skews: skews.flatMap((skew) => skew ?? []) };
}

const WAIT_MS = 5_000;

/** Whatever it answers has a date. */
async function skewOf(base: URL): Promise<number | undefined> {
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

const bad = (found: readonly DoctorFinding[], strict: boolean): boolean =>
  found.some(({ level }) => level === "error" || (strict && level === "warning"));

const COLOUR = { fine: "green", note: "gray", warning: "yellow", error: "red" } as const;
const WORD = { fine: "ok", note: "note", warning: "warning", error: "error" } as const;

function inWords(found: readonly DoctorFinding[]): string {
  const rows = found.flatMap(({ level, found: text, todo }) => [
    [paint(COLOUR[level], WORD[level]), text],
    ...(todo === undefined ? [] : [["", paint("gray", `→ ${todo}`)]]),
  ]);
  const counts = (["error", "warning"] as const)
    .map((level) => [found.filter((each) => each.level === level).length, level] as const)
    .filter(([count]) => count > 0)
    .map(([count, level]) => plural(count, level));
  return `${columns(rows)}\n\n${counts.length === 0 ? "Nothing is wrong here." : counts.join(", ")}`;
}
