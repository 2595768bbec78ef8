// The tests read TypeScript as it is, which an old Node cannot. Plain JavaScript, so that every Node can run this check.
const LEAST = 24;

const { node } = process.versions;
if (Number(node.split(".")[0]) < LEAST) {
  console.error(
    [
      `The tests need Node ${LEAST} or later, and this is Node ${node} (${process.execPath}).`,
      "",
      "The checkout brings its own Node. To use it:",
      "  npm ci                    install it, with optional dependencies",
      "  npm test -- <words>       run test files whose path contains one of the words",
      "  npx vitest run -c test/vitest.config.ts <file>",
      "                            run one test file",
      "",
    ].join("\n"),
  );
  process.exit(1);
}
