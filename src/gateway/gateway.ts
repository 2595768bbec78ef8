// From a gateway.yaml to a running gateway. The file comes first, for it says where everything is; then its store begins to
// open, in a thread of its own, while this one still loads what is needed to serve. So nothing heavy is imported here.
import { availableParallelism } from "node:os";
import { problem } from "../config/problems.ts";
import { inFileOrder } from "../config/report.ts";
import type { Located } from "../config/types.ts";
import { Scope, Shared } from "../lib/scope.ts";
import { refuseSecond } from "./control/alone.ts";
import type { ContextServices } from "./services/services.ts";
import type { Running } from "./running.ts";
import { makeStateFolder } from "./services/state-folder.ts";
import { HeldStore } from "./services/held-store.ts";
import { Descriptors } from "./succession/descriptors.ts";
import { waitingDoor } from "./http/waiting-door.ts";
import { openStore } from "./services/store.ts";
import { warn } from "./reload/config-log.ts";
import { createPeers } from "./services/peers.ts";
import { fail } from "../model/error.ts";
import { ownPort } from "./http/own-port.ts";
import { type GatewayOptions, readConfigOf } from "./options.ts";
import type { Gateway } from "./types.ts";

export async function createGateway(
  of: GatewayOptions,
): Promise<Gateway | { problems: readonly Located[] }> {
  const loaded = await readConfigOf(of);
  const { config } = loaded;
  if (!config) return { problems: loaded.problems };
  const { log } = of;
  warn(log, loaded.problems);
  const refused = (problems: readonly Located[]) => ({
    problems: inFileOrder([...loaded.problems, ...problems], loaded.sources),
  });
  const size = config.workers === "auto" ? availableParallelism() : config.workers;
  if (size > 1 && of.worker === undefined)
    return refused([loaded.place("workers", problem.noWorkers(config.workers))]);

  const before = of.predecessor;
  if (before) {
    const { rehearse } = await import("./rehearse.ts");
    await import("./running.ts");
    const tried = await rehearse({ loaded, config, log, mask: of.mask });
    if ("problems" in tried) return refused(tried.problems);
    await tried[Symbol.asyncDispose]();
  }

  const scope = new Scope();
  const noted = scope.own(new Descriptors());
  let running: Running | undefined;
  try {
    if (!before) await refuseSecond(config.stateDir);
    await makeStateFolder(config.stateDir);
    const estate = await before?.take({ stateDir: config.stateDir, version: of.version });
    const instance = estate?.instance ?? crypto.randomUUID();
    const contextServices: ContextServices = {
      log,
      instance,
      stateDir: config.stateDir,
      proxy: config.proxy,
      env: of.env,
      shared: new Shared(),
      peers: createPeers(async (id, question, near) => running?.peers(id, question, near)),
      own: () => ownPort(running?.urls ?? [], config.listen),
      readings: async () =>
        (await running?.readings()) ?? fail("unavailable", "The gateway does not serve yet."),
    };
    const held = scope.own(
      new HeldStore((own) =>
        openStore(config, contextServices, own, {
          instance,
          version: of.version,
          hear: (news) => running?.hear(news),
        }),
      ),
    );
    const store = held.open();
    // A caller that waits for it hears of it; none does yet.
    store.catch(() => {});
    // What several gateways share may come up later than they do; a socket that was handed over waits by itself.
    const waiting = of.handed?.clients || before ? undefined : waitingDoor(config.listen, store);
    scope.defer(() => waiting?.close());
    // An import begins with work that nothing interrupts: the thread has to be under way before.
    await new Promise(setImmediate);
    const { Running } = await import("./running.ts");
    running = new Running(of, scope);
    const { sockets = [] } = estate ?? {};
    const given = { held, noted, sockets, waiting };
    const problems = await running.start({
      loaded,
      config,
      contextServices,
      store,
      size,
      ...given,
    });
    if (!problems) return running;
    await scope[Symbol.asyncDispose]();
    return refused(problems);
  } catch (error) {
    await scope[Symbol.asyncDispose]().catch(() => {});
    throw error;
  }
}
