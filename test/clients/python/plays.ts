// Each library is one run. The models that libraries publish are another one, which parses
// responses of every form without a gateway.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Play } from "../clients.ts";
import { four } from "../four.ts";
import { LIBRARIES, pythonChecks, titleOf } from "./cast.ts";
import { writeCorpus } from "./corpus.ts";
import { versionOf } from "./venv.ts";

const SCHEMAS: Play = {
  names: ["schemas", "python"],
  title: "the published models of openai and anthropic",
  async cast() {
    const at = await four();
    const folder = await mkdtemp(join(tmpdir(), "tollgate-corpus-"));
    const corpus = join(folder, "corpus.jsonl");
    const seed = await writeCorpus(corpus);
    const library = { name: `schemas, seed ${seed}`, script: "schemas.py" };
    const { checks, [Symbol.asyncDispose]: over } = await pythonChecks(library, at, {
      CORPUS: corpus,
    });
    return {
      checks,
      async [Symbol.asyncDispose]() {
        await over();
        await at[Symbol.asyncDispose]();
        await rm(folder, { recursive: true, force: true });
      },
    };
  },
};

export const PYTHON: readonly Play[] = [
  ...LIBRARIES.map((library): Play => ({
    names: [titleOf(library), library.name, "python"],
    title: `${library.name} ${versionOf(library.name, library.older)}`,
    async cast() {
      const at = await four();
      const { checks, [Symbol.asyncDispose]: over } = await pythonChecks(library, at);
      return {
        // All clients wait for this one together.
        checks: checks.filter(({ name }) => !name.includes(" silence")),
        async [Symbol.asyncDispose]() {
          await over();
          await at[Symbol.asyncDispose]();
        },
      };
    },
  })),
  SCHEMAS,
];
