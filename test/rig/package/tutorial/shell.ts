// A terminal: commands are sent to one bash, which keeps its directory and its variables.
import { spawn } from "node:child_process";

export interface Typed {
  readonly output: string;
  /** Failed commands, with the failure. */
  readonly failed: readonly string[];
  readonly seconds: number;
}

export interface Shell extends Disposable {
  type(text: string): Promise<Typed>;
}

const END = "--- typed ---";
const FAILED = "--- failed ---";

export function shell(cwd: string, env: NodeJS.ProcessEnv): Shell {
  const child = spawn("bash", ["--norc"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  let heard = "";
  let wake = () => {};
  let over = false;
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    heard += text;
    wake();
  });
  child.on("exit", () => {
    over = true;
    wake();
  });
  child.stdin.write(`exec 2>&1\ntrap 'echo "${FAILED} $? $BASH_COMMAND"' ERR\n`);
  return {
    async type(text) {
      const began = performance.now();
      heard = "";
      child.stdin.write(`${text}\necho "${END}"\n`);
      while (!heard.includes(`${END}\n`)) {
        if (over) throw new Error(`the shell has ended:\n${heard}`);
        await new Promise<void>((resolve) => (wake = resolve));
      }
      const lines = heard.slice(0, heard.indexOf(END)).split("\n");
      return {
        output: lines.filter((line) => !line.startsWith(FAILED)).join("\n"),
        failed: lines
          .filter((line) => line.startsWith(FAILED))
          .map((line) => line.slice(FAILED.length + 1)),
        seconds: (performance.now() - began) / 1000,
      };
    },
    [Symbol.dispose]() {
      child.stdin.destroy();
      child.kill();
    },
  };
}
