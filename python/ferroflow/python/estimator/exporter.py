"""Exporters: write SavedModels during `train_and_evaluate`."""

import os

from ferroflow.python.lib.io import file_io
from ferroflow.python.platform import tf_logging as logging


class Exporter:
    @property
    def name(self):
        raise NotImplementedError

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        raise NotImplementedError


class _SavedModelExporter(Exporter):
    def __init__(self, name, serving_input_receiver_fn, assets_extra=None, as_text=False):
        self._name, self._fn, self._assets_extra, self._as_text = name, serving_input_receiver_fn, assets_extra, as_text

    @property
    def name(self):
        return self._name

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        return estimator.export_saved_model(export_path, self._fn, assets_extra=self._assets_extra, as_text=self._as_text, checkpoint_path=checkpoint_path)


class FinalExporter(_SavedModelExporter):
    """Exports once, at the end."""

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        if not is_the_final_export:
            return None
        logging.info("Performing the final export in the end of training.")
        return super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)


def _keep(export_path, exports_to_keep):
    """Deletes all but the newest exports."""
    if exports_to_keep is None or not file_io.is_directory(export_path):
        return
    versions = sorted((n for n in file_io.list_directory(export_path) if n.isdigit()), key=int)
    for name in versions[:-exports_to_keep]:
        file_io.delete_recursively(os.path.join(export_path, name))


class LatestExporter(_SavedModelExporter):
    """Exports after each evaluation and keeps the newest few."""

    def __init__(self, name, serving_input_receiver_fn, assets_extra=None, as_text=False, exports_to_keep=5):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        if exports_to_keep is not None and exports_to_keep <= 0:
            raise ValueError("`exports_to_keep`, if provided, must be positive number")
        self._exports_to_keep = exports_to_keep

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        result = super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)
        _keep(export_path, self._exports_to_keep)
        return result


def _loss_is_smaller(best_eval_result, current_eval_result):
    if not best_eval_result or "loss" not in best_eval_result:
        raise ValueError("best_eval_result cannot be empty or no loss is found in it.")
    return best_eval_result["loss"] > current_eval_result["loss"]


class BestExporter(_SavedModelExporter):
    """Exports when the model is better than before."""

    def __init__(self, name="best_exporter", serving_input_receiver_fn=None, event_file_pattern="eval/*.tfevents.*", compare_fn=_loss_is_smaller, assets_extra=None, as_text=False, exports_to_keep=5):
        super().__init__(name, serving_input_receiver_fn, assets_extra, as_text)
        self._compare_fn, self._exports_to_keep, self._best = compare_fn, exports_to_keep, None
        self._event_file_pattern = event_file_pattern

    def export(self, estimator, export_path, checkpoint_path, eval_result, is_the_final_export):
        if self._best is not None and not self._compare_fn(best_eval_result=self._best, current_eval_result=eval_result):
            return None
        self._best = eval_result
        logging.info("Performing best model export.")
        result = super().export(estimator, export_path, checkpoint_path, eval_result, is_the_final_export)
        _keep(export_path, self._exports_to_keep)
        return result
