// Sets up plugins one after the other, each with a deadline. Every failure is reported as a problem
// at the plugin's line.
import type { Catalog } from "../../catalog/catalog.ts";
import { resolveNeeds } from "../../config/sections/plugin-needs.ts";
import { problem, type ProblemText } from "../../config/problems.ts";
import type { GatewayConfig, LocatedProblem, MountConfig } from "../../config/gateway-config.ts";
import type { LifetimeScope } from "../../lib/lifetime-scope.ts";
import { publicErrorText } from "../../model/error.ts";
import type { PluginKind } from "../../plugin/define.ts";
import { findUnknownSetupMember } from "../../plugin/known-members.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Services } from "../services.ts";
import type { Generation } from "../../pipeline/generation.ts";
import { createPluginContext } from "./plugin-context.ts";

const SETUP_TIMEOUT_MS = 10_000;
/**
 * Setup timeout of a plugin in another process, in milliseconds. It includes the start of the
 * process.
 */
const OUT_OF_PROCESS_SETUP_TIMEOUT_MS = 30_000;

/**
 * Returns a located problem for an entry of gateway.yaml. `side` selects the key or the value of a
 * pointer. Default: the value.
 */
export type ProblemLocator = (
  id: string,
  words: ProblemText,
  side?: "key" | "value",
) => LocatedProblem;

export type PluginCommands = NonNullable<Commands["commands"]>;

export class PluginSetup {
  readonly problems: LocatedProblem[] = [];
  readonly commands = new Map<string, PluginCommands>();
  /** Set after the providers are mounted. */
  catalog: Catalog | undefined;
  /** Set when all plugins are set up. */
  generation: Generation | undefined;
  readonly scope: LifetimeScope;
  readonly services: Services;
  readonly #locate: ProblemLocator;
  readonly #config: Pick<GatewayConfig, "file" | "bounds">;

  constructor(
    scope: LifetimeScope,
    services: Services,
    locate: ProblemLocator,
    config: Pick<GatewayConfig, "file" | "bounds">,
  ) {
    this.scope = scope;
    this.services = services;
    this.#locate = locate;
    this.#config = config;
  }

  addProblem(id: string, problem: ProblemText, side?: "key" | "value"): void {
    this.problems.push(this.#locate(id, problem, side));
  }

  /** Reports that a plugin definition contains something that is not allowed where it is used. */
  addMountProblem({ id, use }: MountConfig<any>, why: string): void {
    this.addProblem(id, problem.badDefinition(use, why));
  }

  /**
   * Sets up a plugin. Returns undefined if it failed, and records the problem.
   * @param scope Lifetime of the plugin. Default: the generation's.
   */
  async setUp<T extends object>(
    mounted: MountConfig<any>,
    scope = this.scope,
  ): Promise<(T & Commands) | undefined> {
    const { id, use } = mounted;
    const kind: PluginKind = mounted.definition["~tollgate"];
    try {
      const limit = mounted.definition["~isolated"]
        ? OUT_OF_PROCESS_SETUP_TIMEOUT_MS
        : SETUP_TIMEOUT_MS;
      const plugin = await withTimeout<T & Commands>(() => this.#callSetup(mounted, scope), limit);
      if (plugin === "late") {
        this.addProblem(id, problem.setupSlow(use, limit));
        return undefined;
      }
      const stranger = findUnknownSetupMember(kind, plugin);
      if (stranger)
        this.addProblem(
          id,
          problem.unknownMember(use, stranger.part, stranger.name, stranger.suggestion),
        );
      if (plugin.commands) this.commands.set(id, plugin.commands);
      return plugin;
    } catch (error) {
      this.services.log.error({ plugin: id, err: error }, "plugin setup failed");
      this.addProblem(
        id,
        problem.setupFailed(use, this.services.mask.maskText(publicErrorText(error))),
      );
      return undefined;
    }
  }

  needsOf({ definition, options }: Pick<MountConfig<any>, "definition" | "options">) {
    return resolveNeeds(definition, options, {
      configFile: this.#config.file,
      env: this.services.env,
    });
  }

  #callSetup({ id, definition, options }: MountConfig<any>, scope: LifetimeScope) {
    const { services } = this;
    const needs = this.needsOf({ definition, options });
    const catalog = () => this.catalog!;
    const generation = () => this.generation;
    const { bounds } = this.#config;
    const ctx = createPluginContext({ id, scope, services, needs, bounds, catalog, generation });
    return definition.setup(options, ctx);
  }
}

async function withTimeout<T>(work: () => T | Promise<T>, limit: number): Promise<T | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const timedOut = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), limit);
  });
  try {
    return await Promise.race([Promise.resolve().then(work), timedOut]);
  } finally {
    clearTimeout(timer);
  }
}
