// The setup of one plugin after the other, under a deadline. Every failure is a problem at the plugin's own line.
import type { Catalogue } from "../../catalogue/catalogue.ts";
import { needsOf } from "../../config/needs.ts";
import { problem, type ProblemText } from "../../config/problems.ts";
import type { Located, MountConfig } from "../../config/types.ts";
import type { Scope } from "../../lib/scope.ts";
import { sayable } from "../../model/error.ts";
import type { PluginKind } from "../../plugin/define.ts";
import { deprecatedMade } from "../../plugin/deprecated.ts";
import { strangerMade } from "../../plugin/members.ts";
import type { Commands } from "../../plugin/plugin.ts";
import type { Services } from "../services/services.ts";
import { createContext } from "./context.ts";

const SETUP_MS = 10_000;
/** Of one outside the gateway, whose process is started first. */
const OUTSIDE_MS = 30_000;

/** A place in gateway.yaml for something that went wrong with what stands there. `side`: of a pointer. Default: its value. */
export type ProblemLocator = (id: string, words: ProblemText, side?: "key" | "value") => Located;

export type PluginCommands = NonNullable<Commands["commands"]>;

export class PluginSetup {
  readonly problems: Located[] = [];
  readonly commands = new Map<string, PluginCommands>();
  /** There once the providers are. */
  catalogue: Catalogue | undefined;
  readonly scope: Scope;
  readonly services: Services;
  readonly #place: ProblemLocator;
  readonly #file: string;

  /** `file`: gateway.yaml. */
  constructor(scope: Scope, services: Services, place: ProblemLocator, file: string) {
    this.scope = scope;
    this.services = services;
    this.#place = place;
    this.#file = file;
  }

  complain(id: string, words: ProblemText, side?: "key" | "value"): void {
    this.problems.push(this.#place(id, words, side));
  }

  /** The definition says something that its place does not allow. */
  refuse({ id, use }: MountConfig<any>, why: string): void {
    this.complain(id, problem.badDefinition(use, why));
  }

  /** Undefined: it failed, and the problem is noted. `scope`: what ends it, when that is not the generation's own. */
  async run<T extends object>(
    mounted: MountConfig<any>,
    scope = this.scope,
  ): Promise<(T & Commands) | undefined> {
    const { id, use, from } = mounted;
    const kind: PluginKind = mounted.definition["~tollgate"];
    try {
      const limit = mounted.definition["~outside"] ? OUTSIDE_MS : SETUP_MS;
      const made = await inTime<T & Commands>(() => this.#made(mounted, scope), limit);
      if (made === "late") {
        this.complain(id, problem.setupSlow(use, limit));
        return undefined;
      }
      const stranger = strangerMade(kind, made);
      if (stranger)
        this.complain(id, problem.unknownMember(use, stranger.part, stranger.name, stranger.near));
      for (const { member, since, write } of deprecatedMade(kind, made))
        this.complain(id, problem.deprecatedMember(from, member, since, write));
      if (made.commands) this.commands.set(id, made.commands);
      return made;
    } catch (error) {
      this.services.log.error({ plugin: id, err: error }, "the setup of a plugin failed");
      this.complain(id, problem.setupFailed(use, this.services.mask.text(sayable(error))));
      return undefined;
    }
  }

  needsOf({ definition, options }: Pick<MountConfig<any>, "definition" | "options">) {
    return needsOf(definition, options, { file: this.#file, env: this.services.env });
  }

  #made({ id, definition, options }: MountConfig<any>, scope: Scope) {
    const { services } = this;
    const needs = this.needsOf({ definition, options });
    const catalogue = () => this.catalogue!;
    return definition.setup(options, createContext({ id, scope, services, needs, catalogue }));
  }
}

async function inTime<T>(work: () => T | Promise<T>, limit: number): Promise<T | "late"> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), limit);
  });
  try {
    return await Promise.race([Promise.resolve().then(work), late]);
  } finally {
    clearTimeout(timer);
  }
}
