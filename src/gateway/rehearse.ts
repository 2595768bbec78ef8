// What commands work on when no gateway runs: a generation that serves no client, and the store alone.
// A rehearsal touches nothing of the state folder and calls no upstream.
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLists, openLists } from "../catalogue/lists.ts";
import type { ListSource } from "../catalogue/refresh.ts";
import { NOTHING, type Schema } from "../config/dialect.ts";
import type { LoadedConfig } from "../config/load.ts";
import { problem } from "../config/problems.ts";
import { secretsOf } from "../config/redact.ts";
import type { ListenTls } from "../config/lines.ts";
import type { GatewayConfig, Located } from "../config/types.ts";
import type { Log } from "../lib/log.ts";
import type { Mask } from "../lib/mask.ts";
import { Scope, Shared } from "../lib/scope.ts";
import { fail, sayable } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { Commands } from "../plugin/plugin.ts";
import type { Store } from "../plugin/store.ts";
import { Conducts } from "../walk/conduct.ts";
import { RestingTargets } from "../walk/candidates/resting.ts";
import { createUsual } from "../money/usual.ts";
import { Gate } from "../walk/bounds/gate.ts";
import { Room } from "../walk/bounds/room.ts";
import { Strain } from "../walk/bounds/strain.ts";
import { Turnstile } from "../walk/bounds/turnstile.ts";
import { Watchdog } from "../walk/bounds/watchdog.ts";
import { acceptedInput, answering } from "./control/input.ts";
import { explainIn } from "./control/explanation.ts";
import { openFiles } from "./services/files.ts";
import { build, type BuiltGeneration } from "./generation/build.ts";
import { linesOf } from "./generation/live-lists.ts";
import type { Services } from "./services/services.ts";
import { ClaimTable } from "./services/claims.ts";
import { KnownAccounts } from "./services/accounts.ts";
import { Health } from "./services/health.ts";
import { createKeys } from "./services/keys.ts";
import { createLedger } from "./services/ledger-queue.ts";
import { modelCommands } from "./control/model-commands.ts";
import { type Mounts, mountedCommands, pluginCommands } from "./control/plugin-commands.ts";
import { policyCommands } from "./control/policy-commands.ts";
import { Audience } from "./observers/audience.ts";
import { Pools } from "./services/pools.ts";
import { Repeats } from "../lib/repeats.ts";
import { unkeepable } from "./services/retention.ts";
import { Retiring } from "./services/retiring.ts";
import { makeStateFolder } from "./services/state-folder.ts";
import { openStore as opened, setUpStore } from "./services/store.ts";
import { Durations } from "./readings/durations.ts";
import { Refusals } from "./readings/refusals.ts";
import { UnderWay } from "./requests/under-way.ts";
import { OtherNodes } from "./services/nodes.ts";
import { createPeers } from "./services/peers.ts";

export interface RehearseOptions {
  readonly loaded: LoadedConfig;
  readonly config: GatewayConfig;
  readonly log: Log;
  readonly mask: Mask;
}

export interface Rehearsal extends AsyncDisposable {
  /** Worth saying, and no error. */
  readonly warnings: readonly Located[];
  /** As the control socket of a running gateway has them. */
  readonly commands: ReturnType<typeof commandsOn>;
  /** Each credential of each provider that can be asked what it has; asking is a call, and the only one there is here. */
  readonly lists: readonly ListSource[];
  readonly providers: BuiltGeneration["providers"];
}

/** Everything up to and including every plugin's setup. */
export async function rehearse(
  of: RehearseOptions,
): Promise<Rehearsal | { problems: readonly Located[] }> {
  const { config, loaded } = of;
  const scope = new Scope();
  const stateDir = await mkdtemp(join(tmpdir(), "tollgate-rehearsal-"));
  scope.defer(() => rm(stateDir, { recursive: true, force: true }));
  const services = await idleServices(of, scope, stateDir);
  const problems: Located[] = [];
  const store = await setUpStore(config, services, scope).catch((error: unknown) => {
    problems.push(
      loaded.place("store", problem.setupFailed(config.store.use, of.mask.text(sayable(error)))),
    );
    return undefined;
  });
  const kept = store && unkeepable(loaded, config, store);
  if (kept) problems.push(kept);
  problems.push(...(await certificateProblems(config, loaded.place)));
  const built = await build({ number: 0, config, services, place: loaded.place, probe: false });
  if ("problems" in built) problems.push(...built.problems);
  else scope.defer(() => built.retire());
  if ("problems" in built || !store || problems.length > 0) {
    await scope[Symbol.asyncDispose]();
    return { problems };
  }
  return {
    warnings: built.warnings,
    commands: commandsOn({ config, built, store, mask: of.mask, env: services.env }),
    lists: linesOf(built),
    providers: built.providers,
    [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose](),
  };
}

/** Of files that only a start reads. */
async function certificateProblems(
  { listen, admin }: GatewayConfig,
  place: LoadedConfig["place"],
): Promise<readonly Located[]> {
  const all = listen.flatMap(({ tls }): (readonly [string, ListenTls])[] =>
    tls ? [["listen", tls]] : [],
  );
  if (admin?.tls) all.push(["admin", { ...admin.tls, minVersion: "TLSv1.2", clients: undefined }]);
  if (all.length === 0) return [];
  const { contextOf } = await import("./http/tls.ts");
  const found = await Promise.all(
    all.map(async ([section, tls]) =>
      contextOf(tls, `${section}.tls`).then(
        () => [],
        (error: unknown) => [place(section, problem.badCertificate(sayable(error)))],
      ),
    ),
  );
  return found.flat();
}

/** The commands of the table that a generation alone can do. */
const commandsOn = (mounts: Mounts) => {
  const { built, config } = mounts;
  return {
    ...answering({
      explain: async ({ model, frontend, key, privacy }) => {
        if (key !== undefined)
          fail("unavailable", "Which keys there are a running gateway knows.", {
            code: "not_running",
          });
        return explainIn(built, config, model, { name: frontend, client: { privacy } });
      },
    }),
    ...modelCommands(
      () => built,
      () => config.models,
    ),
    ...policyCommands(() => built),
    ...pluginCommands(() => mounts),
  };
};

/** One of the commands that plugins bring, "<plugin id>/<command>", on the store itself; only while no gateway has it. */
export async function runPluginCommand(
  of: RehearseOptions,
  name: string,
  input: JsonObject,
): Promise<Json> {
  const early = await unopened(of, name, input);
  if (early) return early.answer;
  await using opened = await openStore(of);
  const { store, services } = opened;
  const { config, mask, loaded } = of;
  const lived = { ...services, store, reports: store, keys: createKeys(store) };
  const built = await build({
    number: 0,
    config,
    services: lived,
    place: loaded.place,
    probe: false,
  });
  if ("problems" in built)
    return fail(
      "invalid",
      built.problems.map(({ path, message }) => `${path}: ${message}`).join("; "),
    );
  try {
    const mounts = (): Mounts => ({ config, built, store, mask, env: services.env });
    return (await mountedCommands(mounts).find(name)!.run(input)) as Json;
  } finally {
    await built.retire();
  }
}

/** What a store does before it is opened; undefined: the command is none of these. */
async function unopened(
  of: RehearseOptions,
  name: string,
  input: JsonObject,
): Promise<{ answer: Json } | undefined> {
  if (!name.startsWith("store/")) return undefined;
  const scope = new Scope();
  try {
    await makeStateFolder(of.config.stateDir);
    const services = await idleServices(of, scope, of.config.stateDir);
    const { commands }: Store & Commands = await setUpStore(of.config, services, scope);
    const command = commands?.[name.slice("store/".length)];
    if (!command?.unopened) return undefined;
    const accepted = acceptedInput((command.input as Schema | undefined) ?? NOTHING, input);
    return { answer: await command.run(accepted) };
  } finally {
    await scope[Symbol.asyncDispose]();
  }
}

/** The store of a config, opened; only while no gateway has it. */
export async function openStore(
  of: RehearseOptions,
): Promise<{ store: Store; services: Services } & AsyncDisposable> {
  const scope = new Scope();
  try {
    await makeStateFolder(of.config.stateDir);
    const services = await idleServices(of, scope, of.config.stateDir);
    const store = await opened(of.config, services, scope, { version: "" });
    return { store, services, [Symbol.asyncDispose]: () => scope[Symbol.asyncDispose]() };
  } catch (error) {
    await scope[Symbol.asyncDispose]();
    throw error;
  }
}

/** The services of a gateway that does not run: no calls, no keys, nothing written. */
async function idleServices(
  of: RehearseOptions,
  scope: Scope,
  stateDir: string,
): Promise<Services> {
  const { config, log, mask } = of;
  log.secrets(secretsOf(config));
  const idle = () => fail("unavailable", "No gateway is running.");
  const lists = join(config.stateDir, "catalogue");
  const store: Store = {
    open: async () => idle(),
    apply: async () => idle(),
    key: async () => undefined,
    keys: async () => ({ items: [] }),
    entries: async () => ({ items: [] }),
    totals: async () => [],
  };
  return {
    log,
    mask,
    stateDir,
    proxy: config.proxy,
    env: process.env,
    store,
    writes: store,
    ledger: createLedger(store),
    health: new Health(),
    reports: store,
    keys: createKeys(store),
    accounts: new KnownAccounts(),
    shared: new Shared(),
    peers: createPeers(),
    refusals: new Refusals(),
    underWay: new UnderWay(),
    commits: new Durations(),
    own: () => idle(),
    readings: async () => idle(),
    observing: new Audience(log),
    rests: new RestingTargets(),
    conducts: new Conducts({ quarantined() {}, released() {} }),
    retiring: new Retiring(log),
    repeats: scope.own(new Repeats()),
    usual: createUsual(),
    watchdog: scope.own(new Watchdog()),
    gate: new Gate(config.overload, scope.own(new Strain())),
    claims: new ClaimTable(),
    room: new Room(0),
    turnstile: new Turnstile(),
    pools: scope.own(new Pools(config.proxy)),
    // What providers said last is worth knowing; a folder for it is not worth making.
    lists: existsSync(lists) ? await openLists(lists) : createLists(),
    files: await openFiles(join(stateDir, "files")),
    between: new Uint8Array(),
    elsewhere: new OtherNodes({}, "", new Uint8Array()),
    pictures: { keep: async () => idle(), get: async () => idle() },
  };
}
