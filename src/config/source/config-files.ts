// Reads the texts of the config: from disk, with a record of all texts, or from the record of
// another process. All processes of one gateway use the same texts, even if the files have changed
// in the meantime.
import { dirname, join } from "node:path";
import { readdir } from "node:fs/promises";
import { problem } from "../problems.ts";
import { readConfigText } from "./config-source.ts";

export type FileTexts = ReadonlyMap<string, string>;

export interface ConfigFiles {
  read(file: string): ReturnType<typeof readConfigText>;
  /** Returns the absolute paths of the files in a folder. Throws if the folder does not exist. */
  list(folder: string): Promise<string[]>;
  /** All texts that were read, by absolute path. */
  readonly readTexts: FileTexts;
}

export function createDiskFiles(): ConfigFiles {
  const texts = new Map<string, string>();
  return {
    readTexts: texts,
    async read(file) {
      const read = await readConfigText(file);
      if ("text" in read) texts.set(file, read.text);
      return read;
    },
    list: async (folder) => (await readdir(folder)).map((name) => join(folder, name)),
  };
}

export const createRecordedFiles = (texts: FileTexts): ConfigFiles => ({
  readTexts: texts,
  async read(file) {
    const text = texts.get(file);
    return text === undefined ? { words: problem.fileMissing(file) } : { text };
  },
  list: async (folder) => [...texts.keys()].filter((file) => dirname(file) === folder),
});
