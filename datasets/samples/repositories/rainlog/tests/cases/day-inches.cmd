daily in
