// One process of several: services with a borrowed store, a stage, a port that it shares. What it does it is told to do by
// the primary, and when the primary is gone it is gone too.
import { resolve } from "node:path";
import { createLists } from "../../catalogue/lists.ts";
import { defaultText } from "../../config/default.ts";
import { loadConfig } from "../../config/load.ts";
import type { GatewayConfig, LoadPlugin } from "../../config/types.ts";
import type { Log } from "../../lib/log.ts";
import type { Mask } from "../../lib/mask.ts";
import { Scope, Shared } from "../../lib/scope.ts";
import { openServices, type Services } from "../services/services.ts";
import type { Listening } from "../http/listener.ts";
import { forwarding } from "../observers/forwarding.ts";
import { share } from "../http/port.ts";
import { GenerationSlot, type LiveGeneration } from "../generation/slot.ts";
import { createPeers } from "../services/peers.ts";
import { borrowed } from "./lent-store.ts";
import { createLink, type Channel } from "./link.ts";
import type { WorkerCommands } from "./commands.ts";

export interface WorkerOptions {
  readonly load: LoadPlugin;
  readonly log: Log;
  readonly mask: Mask;
}

/** Does what the process at the other end asks for. */
export function work(
  { load, log, mask }: WorkerOptions,
  channel: Channel,
): {
  /** Resolves when this one is to end. */
  readonly over: Promise<void>;
  /** Something is wrong here: another process should take over. */
  ailing(): void;
} {
  const scope = new Scope();
  const lists = createLists();
  const startedAt = Date.now();
  const over = Promise.withResolvers<void>();
  let here: { services: Services; stage: GenerationSlot } | undefined;
  let next: LiveGeneration | undefined;
  let url = "";
  let listening: Listening | undefined;

  const asked: WorkerCommands = {
    async prepare({ number, file, texts, env, overrides }) {
      await asked.abandon();
      const loaded = await loadConfig(resolve(file ?? "gateway.yaml"), {
        env,
        texts,
        overrides,
        load,
        ...(file === undefined && { text: defaultText() }),
      });
      const { config } = loaded;
      if (!config) return loaded.problems;
      here ??= await open(config);
      // The primary has asked providers whether they are ready, for all workers.
      const serving = await here.stage.build({
        number,
        loaded,
        config,
        probe: false,
        observers: false,
      });
      if ("problems" in serving) return serving.problems;
      next = serving;
      return [];
    },

    async commit(port) {
      if (next) here!.stage.swap(next);
      next = undefined;
      ({ url } = port);
      listening ??= await here!.stage.listen({ host: port.address, port: port.port, open: share });
    },

    async abandon() {
      const unwanted = next;
      next = undefined;
      await unwanted?.built.retire();
    },

    lists(provider, heard = []) {
      for (const { credential, models, at } of heard)
        lists.replace(provider, credential, models, at);
      const credentials = heard.map(({ credential }) => credential);
      lists.keep(provider, credentials);
    },

    peer: (id, question) => peers.asked(id, question),

    forget: () => here?.services.keys.forget(),

    status: () => ({
      pid: process.pid,
      startedAt,
      generations: here!.stage.generations(),
      resting: here!.services.rests.list(),
      files: here!.services.files.counts(),
    }),

    async stop(drainMs) {
      if (here) here.stage.draining = true;
      const cut = (await listening?.close(drainMs)) ?? 0;
      await asked.abandon();
      await here?.stage.end();
      observing.flush();
      await scope[Symbol.asyncDispose]();
      // The answer goes first.
      setImmediate(over.resolve);
      return cut;
    },
  };

  const observing = forwarding(() => link);
  const link = createLink(channel, asked);
  const peers = createPeers((id, question) => link.ask("peers", id, question));
  channel.once("disconnect", over.resolve);
  return { over: over.promise, ailing: () => link.tell("ailing") };

  async function open(
    config: GatewayConfig,
  ): Promise<{ services: Services; stage: GenerationSlot }> {
    const { stateDir } = config;
    const services = await openServices(config, {
      contextServices: { log, stateDir, shared: new Shared(), peers },
      mask,
      scope,
      publicUrl: () => here!.stage.current.config.publicUrl ?? url,
      store: borrowed(link),
      lists,
      observing,
    });
    return { services, stage: new GenerationSlot(services) };
  }
}
