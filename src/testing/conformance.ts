// Checks of the plugin contract, for authors of plugins:
//
//     import { conformanceChecks } from "tollgate/testing";
//     import plugin from "./index.ts";
//     for (const { name, run } of conformanceChecks(plugin, { with: { region: "eu" }, credential: { api_key: "canary-7f3a" } })) test(name, run);
import assert from "node:assert/strict";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { OperationSpec } from "../model/operations/operation-spec.ts";
import type { Context } from "../plugin/context.ts";
import type { Definition } from "../plugin/define.ts";
import type { BatchFormat } from "./batches/batch-format.ts";
import type { BackgroundFormat } from "./background/background-format.ts";
import type { VideoFormat } from "./videos/video-format.ts";
import { createCheck, type Check } from "./check.ts";
import { frontendChecks } from "./conformance/frontend.ts";
import { sideEffectChecks, needsChecks, runScript } from "./conformance/side-effects.ts";
import { withDefaults, definitionChecks, findSecrets } from "./conformance/definition.ts";
import { middlewareChecks } from "./conformance/middleware.ts";
import { observerChecks } from "./conformance/observer.ts";
import { providerChecks } from "./conformance/provider.ts";
import { findLeak, type ConformanceSubject } from "./conformance/subject.ts";

// Text of a private request must be gone after its response was sent.
/**
 * Returns the privacy check of a middleware whose module is known. It runs in a separate process,
 * whose whole memory is searched.
 */
const privacyChecks = ({ module, options }: ConformanceSubject): Check[] =>
  module === undefined
    ? []
    : [
        createCheck("private requests leave no data in files, logs, or memory", async () => {
          const found = JSON.parse(
            await runScript("private-data-probe", JSON.stringify({ module, options })),
          ) as string[];
          assert.deepEqual(found, [], `data of a private request was found in ${found.join(", ")}`);
        }),
      ];

/**
 * Options of `conformanceChecks`: the configuration of the plugin under test, and recordings of its
 * provider's responses.
 */
export interface ConformanceOptions {
  /** Plugin options, as under `with:` in gateway.yaml. */
  readonly with?: Readonly<Record<string, unknown>>;
  /**
   * Credential of a provider. The checks search all output for its secrets, so use unique values.
   */
  readonly credential?: Readonly<Record<string, unknown>>;
  /**
   * Folder of recordings. For a provider with several protocols, it contains one folder for each
   * protocol. The recordings are split and truncated, both in the decoder alone and in a real
   * gateway. The built-in protocols that the fake upstream supports need no recordings. For every
   * other protocol, the check fails if there are no recordings. `false`: there are no recordings,
   * and the decoders are not checked.
   */
  readonly recordings?: URL | string | false;
  /**
   * Answers the plugin's `ctx.fetch`, such as the address of a token. Default: every fetch fails.
   */
  readonly fetch?: Context["fetch"];
  /**
   * Location of the plugin's module, to observe its import in a separate process:
   * `import.meta.resolve("./index.ts")`.
   */
  readonly module?: URL | string;
  /**
   * Operations that a package adds and the plugin's native endpoints serve. Their `sample` is sent
   * as the request.
   */
  readonly operations?: readonly OperationSpec[];
  /**
   * Batch API of the provider, which the kit imitates to check the provider's `batches`. Default:
   * OpenAI's files and batches.
   */
  readonly batches?: BatchFormat;
  /**
   * API for videos of the provider, which the kit imitates to check the provider's `videos`. Default:
   * OpenAI's videos.
   */
  readonly videos?: VideoFormat;
  /**
   * Background mode of the provider, which the kit imitates to check the provider's `background`.
   * Default: that of OpenAI's responses.
   */
  readonly background?: BackgroundFormat;
}

/**
 * Returns the conformance checks for one plugin. A test file calls it while the file loads, and
 * passes each check to its test runner. The call itself runs no code of the plugin. Each check
 * calls `setup` and disposes of the result. The function throws if an option is not a valid file
 * location.
 */
export function conformanceChecks(
  definition: Definition,
  options: ConformanceOptions = {},
): Check[] {
  const subject = createSubject(definition, options);
  const kind = definition["~tollgate"];
  const work = [
    ...sideEffectChecks(subject),
    ...needsChecks(subject),
    ...(kind === "provider" ? providerChecks(subject) : []),
    ...(kind === "frontend" ? frontendChecks(subject) : []),
    ...(kind === "middleware" ? [...middlewareChecks(subject), ...privacyChecks(subject)] : []),
    ...(kind === "observer" ? observerChecks(subject) : []),
  ];
  // This check searches the output of all other checks. If it is run alone, it runs them itself.
  const secrecy = createCheck("secrets do not appear in log lines, errors, or events", async () => {
    if (subject.observed.length === 0) for (const { run } of work) await run().catch(() => {});
    for (const thing of subject.observed)
      assert.equal(findLeak(thing, subject.secrets), undefined, "a secret was exposed");
  });
  return [...definitionChecks(subject), ...work, secrecy].map(({ name, run }) => ({
    name: `${definition.name}: ${name}`,
    run,
  }));
}

function createSubject(definition: Definition, given: ConformanceOptions): ConformanceSubject {
  const ofCredential = definition["~tollgate"] === "provider" ? definition.credential : undefined;
  const options = withDefaults(definition.options, given.with ?? {});
  const credential = withDefaults(ofCredential, given.credential ?? {});
  return {
    definition,
    options,
    credential,
    recordings: given.recordings
      ? toPath(given.recordings)
      : (given.recordings as false | undefined),
    module: given.module === undefined ? undefined : toModuleUrl(given.module),
    secrets: [
      ...findSecrets(definition.options, options),
      ...findSecrets(ofCredential, credential),
    ],
    fetch: given.fetch,
    operations: given.operations ?? [],
    batches: given.batches,
    videos: given.videos,
    background: given.background,
    observed: [],
  };
}

const toPath = (place: URL | string): string =>
  place instanceof URL || place.startsWith("file:") ? fileURLToPath(place) : place;
const toModuleUrl = (place: URL | string): string =>
  place instanceof URL ? place.href : /^[a-z]+:/.test(place) ? place : pathToFileURL(place).href;
