// SPDX-License-Identifier: Apache-2.0
// `qrane update A CHANGE`: factors A, changes it by rows or columns in or out, and gives what the changed matrix's
// factorization gives.
#include <chrono>
#include <memory>
#include <optional>

#include <cli/change.hpp>
#include <cli/commands.hpp>
#include <cli/common.hpp>
#include <cli/measures.hpp>
#include <cli/outputs.hpp>
#include <cli/suggest.hpp>
#include <io/matrices/matrix_file.hpp>
#include <qrane/updatable_qr.hpp>

namespace qrane::cli {
namespace {

struct UpdateCommandOptions {
  CommonOptions common;
  std::string a, b, e, r, q, x;
  std::string insert_rows, delete_rows, insert_columns, delete_columns;
  std::string form, method = "automatic";
  bool explain = false, lend = false;
};

/// The one change that the command names.
ChangeWish wish_of(const UpdateCommandOptions& options) {
  std::optional<ChangeWish> wish;
  const auto take = [&](const char* flag, const std::string& text, Change change) {
    if (text.empty()) return;
    detail::check(!wish, ErrorCode::invalid_argument, wish ? wish->flag : "", " and ", flag, ": one change at a time");
    wish = parse_change(flag, text, change);
  };
  take("--insert-rows", options.insert_rows, Change::insert_rows);
  take("--delete-rows", options.delete_rows, Change::delete_rows);
  take("--insert-columns", options.insert_columns, Change::insert_columns);
  take("--delete-columns", options.delete_columns, Change::delete_columns);
  detail::check(wish.has_value(), ErrorCode::invalid_argument,
                "no change: name one of --insert-rows, --delete-rows, --insert-columns, --delete-columns");
  return *wish;
}

QForm form_of(const UpdateCommandOptions& options) {
  const std::string form = options.form.empty() ? (options.q.empty() ? "r" : "thin") : options.form;
  const std::size_t chosen = one_of("--form", form, {"r", "thin", "full"});
  detail::check(chosen > 0 || options.q.empty(), ErrorCode::invalid_argument,
                "--form r keeps no Q, but --q asks for it: ", options.q);
  return chosen == 0 ? QForm::none : chosen == 1 ? QForm::thin : QForm::full;
}

const char* form_name(QForm form) { return form == QForm::none ? "r" : to_string(form); }

/// Everything the command read.
template <class T>
struct Input {
  io::Dense<T> a, u, b, e;
  io::Dense<T> updated, updated_b;
  io::Dense<T> removed, removed_b;  ///< deleted rows, and their right-hand sides
  bool with_b = false;
};

template <class T>
Input<T> read_input(const UpdateCommandOptions& options, const ChangeWish& wish) {
  Input<T> in;
  const auto read = [](const std::string& path) { return read_finite<T>(path); };
  in.a = read(options.a);
  if (!wish.file.empty()) in.u = read(wish.file);
  check_change(wish, options.a, in.a.rows, in.a.cols, in.u.rows, in.u.cols);
  in.updated = changed_matrix(wish, in.a, in.u);
  if (wish.change == Change::delete_rows) in.removed = row_block(in.a, wish.k, wish.p);
  in.with_b = !options.b.empty();
  if (!in.with_b) return in;
  in.b = read(options.b);
  detail::check(in.b.rows == in.a.rows, ErrorCode::invalid_argument, options.b, " has ", in.b.rows, " rows, but ",
                options.a, " is ", shape(in.a.rows, in.a.cols),
                ": the right-hand sides must have as many rows as the matrix");
  if (!options.e.empty()) {
    in.e = read(options.e);
    detail::check(in.e.rows == in.u.rows && in.e.cols == in.b.cols, ErrorCode::invalid_argument, options.e, " is ",
                  shape(in.e.rows, in.e.cols), ", but ", in.u.rows, " rows come in and ", options.b, " has ", in.b.cols,
                  " right-hand sides");
  }
  const bool rows = wish.change == Change::insert_rows || wish.change == Change::delete_rows;
  if (wish.change == Change::delete_rows) in.removed_b = row_block(in.b, wish.k, wish.p);
  in.updated_b = rows ? changed_matrix(wish, in.b, in.e) : in.b;
  return in;
}

void check_wishes(const UpdateCommandOptions& options, const ChangeWish& wish) {
  using detail::check;
  constexpr auto bad = ErrorCode::invalid_argument;
  check(options.x.empty() || !options.b.empty(), bad, "--x: a solution needs right-hand sides, --b");
  check(options.e.empty() || !options.b.empty(), bad, "--e: new right-hand sides need those that are there, --b");
  const bool rows_in = wish.change == Change::insert_rows;
  check(options.e.empty() || rows_in, bad, "--e: only rows that come in bring right-hand sides (--insert-rows)");
  check(!rows_in || options.b.empty() || !options.e.empty(), bad,
        "--insert-rows with --b needs the new rows' right-hand sides, --e");
}

/// R alone cannot tell what new columns make of the right-hand sides.
bool attaches_afterwards(const ChangeWish& wish, QForm form) {
  return form == QForm::none && wish.change == Change::insert_columns;
}

/// A factorization of A that the change is then made to.
template <class T>
UpdatableQR<T> factor(const Context& context, const Input<T>& in, const Resident<T>& a, QForm form,
                      const ChangeWish& wish) {
  Options how;
  how.q = form;
  UpdatableQR<T> f = updatable_qr(context, a.view(), how);
  if (in.with_b && !attaches_afterwards(wish, form))
    f.attach(in.b.view(), form == QForm::none ? a.view() : MatrixView<const T>{});
  f.time_updates(true);
  return f;
}

template <class T>
UpdateReport apply(UpdatableQR<T>& f, const ChangeWish& wish, const Input<T>& in, const UpdateOptions& how,
                   MatrixView<const T> updated) {
  switch (wish.change) {
    case Change::insert_rows:
      return f.insert_rows(wish.k, in.u.view(), in.with_b ? in.e.view() : MatrixView<const T>{}, how, updated);
    case Change::delete_rows:
      return f.delete_rows(wish.k, wish.p, in.removed.view(), in.removed_b.view(), how, updated);
    case Change::insert_columns: return f.insert_columns(wish.k, in.u.view(), how, updated);
    default: return f.delete_columns(wish.k, wish.p, how, updated);
  }
}

Json to_json(const UpdateReport& report) {
  Json candidates = Json::array();
  for (const UpdateCandidate& c : report.candidates) {
    Json one{{"method", to_string(c.method)}};
    if (c.excluded.empty())
      one.update({{"predicted_ms", c.predicted_ms}, {"flops", c.flops}, {"bytes", c.bytes}, {"steps", c.launches}});
    else
      one["excluded"] = c.excluded;
    candidates.push_back(one);
  }
  return {{"change", to_string(report.change)},
          {"k", report.k},
          {"p", report.p},
          {"method", to_string(report.method)},
          {"measured_ms", report.measured_ms},
          {"fell_back", report.fell_back},
          {"candidates", candidates}};
}

template <class T>
int update(const UpdateCommandOptions& options, const ChangeWish& wish, QForm form, const Context& context,
           Precision precision) {
  const Input<T> in = read_input<T>(options, wish);
  const Resident<T> a(context, in.a);
  const Resident<T> updated(context, in.updated);
  UpdateOptions how;
  how.method = update_method_from_string(options.method);
  // R alone knows no rows of A, nor how new columns stand to the old ones
  const bool needs = options.lend || attaches_afterwards(wish, form);
  const MatrixView<const T> lent = needs ? MatrixView<const T>(updated.view()) : MatrixView<const T>{};

  {  // the first update pays for allocations, threads and the building of kernels
    UpdatableQR<T> first = factor(context, in, a, form, wish);
    apply(first, wish, in, how, lent);
  }
  UpdatableQR<T> f = factor(context, in, a, form, wish);
  const UpdateReport report = apply(f, wish, in, how, lent);
  detail::check(!report.refused, ErrorCode::rank_deficient, wish.flag,
                ": R alone does not say what remains, since these rows carry the rank; use --form thin");

  const Words say(options.common.quiet);
  if (options.explain) {
    const std::string words = report.explain();
    say(words.ends_with('\n') ? words.substr(0, words.size() - 1) : words);
  }
  say("matrix         ", options.a, ": ", shape(in.a.rows, in.a.cols), " -> ", shape(f.rows(), f.cols()));
  say("device         ", describe_line(context, precision));
  say("update         ", to_string(report.change), ", method ", to_string(report.method), ", ",
      brief(report.measured_ms), " ms");
  Json json = describe(context, precision);
  json.update({{"file", options.a}, {"rows", f.rows()}, {"cols", f.cols()}, {"form", form_name(form)}});
  json.update(to_json(report));

  const Columns columns = form == QForm::full ? Columns::full : Columns::thin;
  const Matrix<T> r = on_host(context, f.r(columns));
  Matrix<T> q;
  if (form != QForm::none) q = on_host(context, f.q(columns));
  const MatrixView<const T> q_view = std::as_const(q).view();
  const QrErrors errors = cheap_errors<T>(in.updated.view(), form == QForm::none ? nullptr : &q_view, r.view());
  report_errors(say, json, errors);

  Matrix<T> x;
  if (in.with_b) {
    if (attaches_afterwards(wish, form)) f.attach(in.b.view(), updated.view());
    Solution<T> solution = f.solve();
    x = on_host(context, std::move(solution.x));
    const std::vector<double> norms = f.residual_norms();
    say("rank           ", solution.rank, " of ", solution.full, solution.deficient() ? "  ** RANK-DEFICIENT **" : "");
    for (std::size_t c = 0; c < norms.size(); ++c)
      say("residual norm  ", brief(norms[c], 6), "  (right-hand side ", c, ")");
    json.update({{"rank", solution.rank}, {"full_rank", solution.full}, {"residual_norms", norms}});
  }
  const auto write = [&](const char* name, const std::string& path, MatrixView<const T> matrix) {
    if (path.empty()) return;
    io::write_dense<T>(path, matrix);
    say(name, shape(matrix.rows, matrix.cols), " in ", path);
  };
  write("R              ", options.r, r.view());
  write("Q              ", options.q, q_view);
  write("x              ", options.x, std::as_const(x).view());
  write_json(options.common.json, json);
  return exit_success;
}

int run(const UpdateCommandOptions& options) {
  const ChangeWish wish = wish_of(options);
  const QForm form = form_of(options);
  check_wishes(options, wish);
  update_method_from_string(options.method);  // a wrong name is refused before a large file is read
  pick_precision(options.common, Precision::f64);
  bool single = true;
  for (const std::string& path : {options.a, wish.file, options.b, options.e})
    if (!path.empty()) single = io::probe_matrix(path).single_precision && single;
  return run_on_device(options.common, single, {{"--r", options.r}, {"--q", options.q}, {"--x", options.x}},
                       {{"A", options.a}, {wish.flag, wish.file}, {"--b", options.b}, {"--e", options.e}},
                       [&](auto scalar, const Context& context, Precision precision) {
                         return update<decltype(scalar)>(options, wish, form, context, precision);
                       });
}

}  // namespace

Command add_update_command(CLI::App& parent) {
  auto options = std::make_shared<UpdateCommandOptions>();
  CLI::App* app = parent.add_subcommand("update", "change a factorization by rows or columns in or out");
  app->add_option("A", options->a, "matrix file (a sparse .mtx is converted to dense)")->required();
  app->add_option("--insert-rows", options->insert_rows, "the rows in file U come in before row K")->type_name("K:U");
  app->add_option("--delete-rows", options->delete_rows, "P rows from row K on go")->type_name("K:P");
  app->add_option("--insert-columns", options->insert_columns, "the columns in file U come in before column K")
      ->type_name("K:U");
  app->add_option("--delete-columns", options->delete_columns, "P columns from column K on go")->type_name("K:P");
  app->add_option("--form", options->form, "what is kept of Q: r (R alone), thin or full; thin with --q, else r")
      ->type_name("FORM");
  app->add_option("--b", options->b, "right-hand sides of A, one a column, carried along")->type_name("FILE");
  app->add_option("--e", options->e, "with --insert-rows: the new rows' right-hand sides")->type_name("FILE");
  app->add_option("--r", options->r, "write the updated R here")->type_name("FILE");
  app->add_option("--q", options->q, "write the updated Q here")->type_name("FILE");
  app->add_option("--x", options->x, "write the updated problem's solutions here")->type_name("FILE");
  app->add_option("--method", options->method, "automatic, orthogonal, cholesky, trailing or refactor")
      ->type_name("NAME");
  app->add_flag("--lend", options->lend, "lend the changed matrix, so that factoring it anew may be the choice");
  app->add_flag("--explain", options->explain, "print all methods with their predicted times, and the measured one");
  add_common_options(*app, options->common);
  app->footer("K counts from 0. Exactly one change.");
  return {app, [options] { return run(*options); }};
}

}  // namespace qrane::cli
