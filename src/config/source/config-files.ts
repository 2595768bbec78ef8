// Where the config's texts come from: the disk, which remembers what it said, or what another process read there. Every
// process of one gateway is built from the same texts, whatever has happened to the files since.
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { problem } from "../problems.ts";
import { readConfigText } from "./config-source.ts";

export type FileTexts = ReadonlyMap<string, string>;

export interface ConfigFiles {
  read(file: string): ReturnType<typeof readConfigText>;
  /** The files of a folder, absolute; throws when there is no such folder. */
  list(folder: string): Promise<string[]>;
  /** By absolute path, what could be read so far. */
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
