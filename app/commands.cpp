#include "commands.hpp"

#include <algorithm>
#include <array>

#include "lnorm/core/text.hpp"

namespace lnorm::app {

namespace {

constexpr std::array kCommands{
    CommandRow{
        .command = kApply,
        .name = "apply",
        .help = "Normalize a tensor (the default command)",
        .puts_out = "Output",
        .run = apply,
        .on_all_ranks = true,
        .called = "layernorm layer-norm norm normalize normalise run",
        .examples =
            "Examples:\n"
            "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
            "  lnorm x.json\n"
            "  lnorm x.json --weight '[1, 1, 2]' --bias 0.5 --dtype float32 -o y.npy\n"
            "  cat y.npy | lnorm --axes 0,1 --unbiased --eps 0 --to text\n"
            "\n"
            "FILE:NAME is one tensor of a file of several; - is standard input. JSON has no\n"
            "dtype: it is read as float64, or as --as says.\n"
            "Exit status: 0 if all is done or agrees; 1 if something differs, or if a wrong\n"
            "kernel passes; 2 after an error.",
        .usage = "[apply] [INPUT...]"},
    CommandRow{.command = kStats,
               .name = "stats",
               .help = "What normalization does to every row, in numbers",
               .puts_out = "Report",
               .run = stats,
               .on_all_ranks = true,
               .called = "summary describe statistics hist histogram mean var variance std moments",
               .examples = "Examples:\n"
                           "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
                           "  lnorm stats x.json --softmax\n"
                           "  lnorm stats x.json --unbiased --histogram\n"
                           "  lnorm stats x.json --csv > stats.csv"},
    CommandRow{
        .command = kCompare,
        .name = "compare",
        .help = "Compare a tensor with another, element by element, or a file of tensors",
        .puts_out = "Report",
        .run = compare,
        .on_all_ranks = true,
        .called = "isclose assert-close assert-allclose diff cmp allclose",
        .examples =
            "The tensors agree if every criterion that is given holds. An element is within\n"
            "tolerance if |actual - expected| <= atol + rtol * |expected|. Where no criterion\n"
            "is given, rtol and atol are those of torch.testing for the dtypes; of --rtol and\n"
            "--atol alone the other is 0. NaN or infinity against another value always fails.\n"
            "An ulp, a unit in the last place, is the step from one number of a dtype to the\n"
            "next. Where the expected dtype is wider it is a step of the actual dtype, and\n"
            "distances have a fraction: 0.5 or less is correctly rounded.\n"
            "\n"
            "Files and folders of several tensors are compared name by name.\n"
            "\n"
            "Examples:\n"
            "  echo '[0.1, 0.2]' > actual.json\n"
            "  echo '[0.1, 0.20000000000000004]' > expected.json\n"
            "  lnorm compare actual.json expected.json && echo same\n"
            "  cat actual.json | lnorm compare - expected.json --max-ulp 1\n"
            "  lnorm actual.json --dtype float16 -o y16.npy\n"
            "  lnorm actual.json | lnorm compare y16.npy - --max-ulp 0.5 --min-sqnr 60\n"
            "  echo '{\"x\": [1, 2], \"y\": 3}' > a.json\n"
            "  echo '{\"m.x\": [1, 2], \"m.y\": 3, \"m.z\": 4}' > b.json\n"
            "  lnorm compare a.json b.json --rename 'm.*={1}' --common\n"
            "\n"
            "Exit status: 0 they agree, 1 they differ, 2 they could not be compared.",
        .usage = "compare ACTUAL EXPECTED"},
    CommandRow{
        .command = kCheck,
        .name = "check",
        .help = "Is OUTPUT what layer norm of INPUT gives: rounding or bug, and which bug",
        .puts_out = "Report",
        .run = check,
        .on_all_ranks = false,
        .called = "verify validate diagnose judge",
        .examples =
            "The verdict needs no tolerance. Every element is compared with the exact value.\n"
            "How far off rounding in the kernel's arithmetic can bring it is known:\n"
            "  correctly rounded  every element is the exact value, rounded once\n"
            "  within rounding    none is farther off than rounding explains\n"
            "  differs            some are: then wrong kernels are tried, and the simplest\n"
            "                     that explains all elements is named\n"
            "Criteria of lnorm compare may stand beside it; then they decide the exit status.\n"
            "\n"
            "Examples:\n"
            "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
            "  lnorm x.json -o y.npy --dtype float32\n"
            "  lnorm check x.json y.npy && echo right\n"
            "  lnorm x.json --unbiased | lnorm check x.json - --json\n"
            "\n"
            "Exit status: 0 correctly rounded or within rounding, 1 it differs, 2 it could\n"
            "not be judged.",
        .usage = "check INPUT OUTPUT"},
    CommandRow{
        .command = kMutants,
        .name = "mutants",
        .help = "Which wrong kernels a test's inputs and tolerance would let through",
        .puts_out = "Report",
        .run = mutants,
        .on_all_ranks = false,
        .called = "mutate mutation mutation-test mutant",
        .examples =
            "Each wrong kernel that lnorm check knows is computed on the inputs, and compared\n"
            "with what lnorm apply writes by the criteria of a test, or the default tolerance\n"
            "of torch.testing. One that passes on every input is one that the test would not\n"
            "notice. No kernel is needed. truncated and away, which are off by less than an\n"
            "ulp, are tried if they are named or --max-ulp is below 1.\n"
            "\n"
            "Of a folder that lnorm inputs has made, its manifest says weight, bias and dy.\n"
            "With a dy the backward pass is judged as well, by dx, dweight and dbias.\n"
            "With --quantize the kernels that quantize wrongly are tried alone, by q.\n"
            "\n"
            "Examples:\n"
            "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
            "  lnorm mutants x.json --dtype float32 --rtol 1e-2 --atol 1e-2 || echo blind\n"
            "  lnorm mutants x.json --kernels 'eps-*' --json || true\n"
            "  lnorm mutants x.json --quantize row --dtype int8 --atol 1 || echo blind\n"
            "  lnorm mutants --list\n"
            "\n"
            "Exit status: 0 all are caught, except those that are equivalent by formula and\n"
            "options, 1 one passes, 2 they could not be judged."},
    CommandRow{
        .command = kInputs,
        .name = "inputs",
        .help = "Make inputs that tell wrong kernels from right ones",
        .puts_out = "Output",
        .run = inputs,
        .on_all_ranks = false,
        .called = "generate make-inputs cases test-inputs testdata",
        .examples =
            "A folder, or a file of several tensors, and a manifest: JSON that says of each\n"
            "case which tensors are its x, weight, bias and dy, why it exists (for), and\n"
            "which wrong kernels it kills at the default tolerance of its dtype. The same\n"
            "options give the same bytes on every machine.\n"
            "\n"
            "Examples:\n"
            "  lnorm inputs --shape 8,100 -o cases/\n"
            "  lnorm mutants cases/ && echo 'none passes'\n"
            "  lnorm inputs --shape 2,3,64 --normalized-shape 3,64 --rms -o cases.npz",
        .usage = "inputs --shape D[,D...] -o PATH"},
    CommandRow{.command = kSoftmax,
               .name = "softmax",
               .help = "Softmax of every row",
               .puts_out = "Output",
               .run = softmax,
               .on_all_ranks = true,
               .called = "",
               .examples = "Examples:\n"
                           "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
                           "  lnorm softmax x.json --to text\n"
                           "  lnorm softmax x.json --axes 0,1 --dtype float64 -o y.npy"},
    CommandRow{.command = kConvert,
               .name = "convert",
               .help = "The same elements in another format or dtype",
               .puts_out = "Output",
               .run = convert,
               .on_all_ranks = true,
               .called = "cast export astype",
               .examples =
                   "A file of several tensors goes as it is into one that holds several. --dtype\n"
                   "rounds every element once; without it all bits stay as they are.\n"
                   "\n"
                   "Examples:\n"
                   "  echo '{\"x\": [[1, 2, 4], [3, 3, 9]], \"gamma\": [1, 1, 2]}' > model.json\n"
                   "  lnorm convert model.json -o model.safetensors --dtype float16\n"
                   "  lnorm convert model.safetensors:x -o x.bin\n"
                   "  lnorm convert x.bin --from raw --as float16 --shape=-1,3 --to json"},
    CommandRow{
        .command = kGrad,
        .name = "grad",
        .help = "The backward pass: gradients of input, weight and bias",
        .puts_out = "Output",
        .run = grad,
        .on_all_ranks = true,
        .called = "backward bwd backprop gradient vjp",
        .examples =
            "The gradients of sum(dy * y) by x, weight and bias, where y is what lnorm apply\n"
            "writes. With g = dy * weight, and sums over a row,\n"
            "  dx = (g - sum(g) / n) / s - (x - mean) * sum(g * (x - mean)) / (n s^3)\n"
            "and over all rows\n"
            "  dweight = sum(dy * (x - mean) / s)      dbias = sum(dy)\n"
            "\n"
            "Examples:\n"
            "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
            "  echo '[[1, 0, 0], [0, 1, 2]]' > dy.json\n"
            "  lnorm grad x.json --dy dy.json --weight '[1, 1, 2]'\n"
            "  lnorm grad x.json --dy dy.json -o dx.npy --dweight dw.npy --dbias db.npy\n"
            "  cat dy.json | lnorm grad x.json --dy - --rms --to text"},
    CommandRow{.command = kExplain,
               .name = "explain",
               .help = "One row, step by step, with its numbers in the formula",
               .puts_out = "Report",
               .run = explain,
               .on_all_ranks = false,
               .called = "trace walkthrough steps step-by-step teach",
               .examples =
                   "Examples:\n"
                   "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
                   "  lnorm explain x.json\n"
                   "  lnorm explain x.json --row 1 --weight '[1, 1, 2]' --bias 0.5 --unbiased\n"
                   "  lnorm explain x.json --row -1 --rms --json"},
    CommandRow{.command = kReport,
               .name = "report",
               .help = "A page to look at, in one HTML file",
               .puts_out = "Page",
               .run = report,
               .on_all_ranks = false,
               .called = "page html plot chart figure visualize draw",
               .examples =
                   "The page needs no network and no other file. Its figures are made with Vega;\n"
                   "--spec writes their specifications by themselves, for notebooks.\n"
                   "\n"
                   "Examples:\n"
                   "  echo '[[1, 2, 4], [3, 3, 9]]' > x.json\n"
                   "  lnorm report x.json -o report.html\n"
                   "  lnorm report x.json --softmax --unbiased -o report.html --spec figures/"},
    CommandRow{.command = kShow,
               .name = "show",
               .help = "Print a tensor, as PyTorch prints it, or list the tensors of a file",
               .puts_out = "Report",
               .run = show,
               .on_all_ranks = false,
               .called = "print cat info ls list view head dump inspect",
               .examples =
                   "Examples:\n"
                   "  echo '{\"x\": [[1, 2, 4], [3, 3, 9]], \"gamma\": [1, 1, 2]}' > model.json\n"
                   "  lnorm show model.json\n"
                   "  lnorm show model.json:x --precision 2 --header"},
};

}  // namespace

std::span<const CommandRow> all_commands() { return kCommands; }

const CommandRow& command_row(Command command) {
  return *std::find_if(kCommands.begin(), kCommands.end(),
                       [&](const CommandRow& row) { return row.command == command; });
}

const CommandRow* find_command(std::string_view name) {
  const auto* const found = std::find_if(kCommands.begin(), kCommands.end(),
                                         [&](const CommandRow& row) { return row.name == name; });
  return found == kCommands.end() ? nullptr : found;
}

std::string Program::usage(const CommandRow* command) const {
  return concat(launcher, name, ' ',
                command == nullptr       ? "[COMMAND] [INPUT...]"
                : command->usage.empty() ? concat(command->name, " [INPUT...]")
                                         : std::string(command->usage),
                " [OPTIONS]");
}

std::string Program::footer() const {
  return concat(name, " COMMAND --help lists the options of a command.\n\n", examples);
}

std::string hint_of(Command command) {
  return concat("lnorm ", command_row(command).name, " --help lists the options");
}

}  // namespace lnorm::app
